-- # Together: what one person can move at once

-- Disjoint rows cost what one of them costs.
SELECT COUNT_IF(age > 50) AS older, COUNT_IF(age <= 50) AS younger FROM visits;
--> accepted
--> values: older = COUNT(*) FILTER(WHERE visits.age > 50), younger = COUNT(*) FILTER(WHERE visits.age <= 50)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace, Laplace

SELECT COUNT(*) AS n, COUNT_IF(paid) AS paid, COUNT_IF(NOT paid) AS open FROM visits;
--> accepted
--> values: n = COUNT(*), paid = COUNT(*) FILTER(WHERE visits.paid), open = COUNT(*) FILTER(WHERE NOT visits.paid)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.0582572, δ = 0; Laplace, Laplace, Laplace

-- A branch of CASE is a condition.
SELECT SUM(CASE WHEN paid THEN cost ELSE 0 END) AS paid, SUM(CASE WHEN NOT paid THEN cost END) AS open FROM visits;
--> accepted
--> values: paid = SUM(CASE WHEN visits.paid THEN visits.cost ELSE 0 END), open = SUM(CASE WHEN NOT visits.paid THEN visits.cost ELSE NULL END)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace, Laplace

-- People may have both kinds of visits.
SELECT COUNT(DISTINCT patient_id) FILTER (WHERE paid) AS some, COUNT(DISTINCT patient_id) FILTER (WHERE NOT paid) AS others FROM visits;
--> accepted
--> values: some = COUNT(DISTINCT visits.patient_id) FILTER(WHERE visits.paid), others = COUNT(DISTINCT visits.patient_id) FILTER(WHERE NOT visits.paid)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.0621766, δ = 0; Laplace, Laplace
