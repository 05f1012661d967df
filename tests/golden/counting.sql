-- # Counting

-- Rows.
SELECT COUNT(*) AS visits FROM visits;
--> accepted
--> values: visits = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

-- People: the unit counted once each.
SELECT COUNT(DISTINCT patient_id) AS patients FROM visits;
--> accepted
--> values: patients = COUNT(DISTINCT visits.patient_id)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.12246, δ = 0; Laplace

-- Rows in which something is known.
SELECT COUNT(doctor) AS with_doctor FROM visits;
--> accepted
--> values: with_doctor = COUNT(visits.doctor)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

-- Different values of a column.
SELECT COUNT(DISTINCT doctor) AS doctors FROM visits;
--> accepted
--> values: doctors = COUNT(DISTINCT visits.doctor)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

-- BigQuery's name for about the same.
SELECT APPROX_COUNT_DISTINCT(doctor) AS doctors FROM visits;
--> accepted
--> values: doctors = COUNT(DISTINCT visits.doctor)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

-- Rows that fulfil a condition, three ways.
SELECT COUNTIF(paid) AS paid FROM visits;
--> accepted
--> values: paid = COUNT(*) FILTER(WHERE visits.paid)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT COUNT(*) FILTER (WHERE paid) AS paid FROM visits;
--> accepted
--> values: paid = COUNT(*) FILTER(WHERE visits.paid)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT COUNT(CASE WHEN paid THEN 1 END) AS paid FROM visits;
--> accepted
--> values: paid = COUNT(CASE WHEN visits.paid THEN 1 ELSE NULL END)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

-- Several at once share one price.
SELECT COUNT(*) AS n, COUNT(DISTINCT patient_id) AS people, COUNTIF(cost > 100) AS dear FROM visits;
--> accepted
--> values: n = COUNT(*), people = COUNT(DISTINCT visits.patient_id), dear = COUNT(*) FILTER(WHERE visits.cost > 100)
--> rows: at most 20 of one unit
--> price: ε = 0.499985, ρ = 0.0512829, δ = 0; Laplace, Laplace, Laplace

-- A unit of two columns is counted by both.
SELECT COUNT(DISTINCT nurse, day) AS nurse_days FROM shifts;
--> accepted
--> values: nurse_days = COUNT(DISTINCT shifts.nurse, shifts.day)
--> rows: at most 3 of one unit
--> price: ε = 0.5, ρ = 0.12246, δ = 0; Laplace

-- One of them alone is just a value.
SELECT COUNT(DISTINCT nurse) AS nurses FROM shifts;
--> accepted
--> values: nurses = COUNT(DISTINCT shifts.nurse)
--> rows: at most 3 of one unit
--> price: ε = 0.5, ρ = 0.108347, δ = 0; Laplace

-- Where every row is protected by itself, rows are counted.
SELECT COUNT(*) AS readings FROM readings;
--> accepted
--> values: readings = COUNT(*)
--> rows: at most 1 of one unit
--> price: ε = 0.5, ρ = 0.12246, δ = 0; Laplace

-- Two different things cannot be counted as one.
SELECT COUNT(DISTINCT city, doctor) FROM visits;
--> refused Q33

SELECT COUNT() FROM visits;
--> accepted
--> values: count = COUNT(*)
--> rows: at most 20 of one unit

SELECT COUNTIF(*) FROM visits;
--> refused Q33

-- A condition must be one.
SELECT COUNT(*) FILTER (WHERE age) FROM visits;
--> refused Q33

SELECT COUNT(DISTINCT *) FROM visits;
--> refused Q12
