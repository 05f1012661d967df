-- # Kinds of questions in SmartNoise's documentation, about a clinic

SELECT COUNT(*) AS people FROM patients;
--> accepted
--> values: people = COUNT(*)
--> rows: at most 1 of one unit
--> price: ε = 0.5, ρ = 0.12246, δ = 0; Laplace

SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex ORDER BY n DESC;
--> accepted
--> groups: sex (3 public)
--> values: n = COUNT(*)
--> after: ORDER BY
--> rows: at most 1 of one unit
--> price: ε = 0.5, ρ = 0.12246, δ = 0; Laplace

SELECT sex, AVG(birth_year) AS born FROM patients WHERE birth_year BETWEEN 1950 AND 2000 GROUP BY sex;
--> accepted
--> groups: sex (3 public)
--> values: born = AVG(patients.birth_year)
--> rows: at most 1 of one unit
--> price: ε = 0.5, ρ = 0.106538, δ = 0; Laplace

SELECT paid, COUNT(DISTINCT patient_id) AS people, SUM(cost) AS total, AVG(cost) AS mean, VAR(cost) AS v FROM visits GROUP BY paid;
--> accepted
--> groups: paid (2 public)
--> values: people = COUNT(DISTINCT visits.patient_id), total = SUM(visits.cost), mean = AVG(visits.cost), v = VAR_SAMP(visits.cost)
--> rows: at most 20 of one unit
--> price: ε = 0.499993, ρ = 0.0779528, δ = 0; Laplace, Laplace

SELECT paid, COUNT(DISTINCT patient_id) AS people, SUM(cost) AS total, AVG(cost) AS mean, VARIANCE(cost) AS v, STDDEV(cost) AS s FROM visits GROUP BY paid;
--> accepted
--> groups: paid (2 public)
--> values: people = COUNT(DISTINCT visits.patient_id), total = SUM(visits.cost), mean = AVG(visits.cost), v = VAR_SAMP(visits.cost), s = STDDEV_SAMP(visits.cost)
--> rows: at most 20 of one unit
--> price: ε = 0.499993, ρ = 0.0779528, δ = 0; Laplace, Laplace

-- They refuse joins of private tables; here, on the unit, they are answered.
SELECT p.sex, COUNT(*) AS n, SUM(v.cost) AS total FROM patients p INNER JOIN visits v ON p.patient_id = v.patient_id GROUP BY p.sex;
--> accepted
--> groups: sex (3 public)
--> values: n = COUNT(*), total = SUM(v.cost)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT sex, SUM(age) / COUNT(age) AS mean_age FROM (SELECT p.sex, v.age FROM visits v JOIN patients p ON v.patient_id = p.patient_id) AS s GROUP BY sex;
--> accepted
--> groups: sex (3 public)
--> values: sum_age = SUM(s.age), count_age = COUNT(s.age)
--> after: computed mean_age
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT TOP 5 city, COUNT(*) AS n FROM visits GROUP BY city;
--> accepted
--> groups: city (3 public and NULL)
--> values: n = COUNT(*)
--> after: LIMIT 5
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT city, COUNT(*) AS n FROM clinic.visits GROUP BY city;
--> accepted
--> groups: city (3 public and NULL)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace
