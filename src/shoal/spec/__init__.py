"""What is asked: schema, domains, criteria and policy. Plain values, no data and no algorithm."""
