-- What happens afterwards: corrections, another number for a row, patients who are forgotten.
UPDATE admission SET diagnosis = 'Diabetes' WHERE age > 60;
UPDATE admission SET id = 100000 WHERE id = 1;
DELETE FROM admission WHERE ward = 'Surgery';
