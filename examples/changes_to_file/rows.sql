\copy admission (patient_id, admitted_at, phone, age, sex, postcode, profession, diagnosis, ward) FROM '../anonymize_a_csv/people.csv' CSV HEADER
