-- # Conditions

SELECT COUNT(*) AS n FROM visits WHERE age >= 18 AND age < 65;
--> accepted
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT COUNT(*) AS n FROM visits WHERE (age < 18 OR age >= 65) AND NOT paid;
--> accepted
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT COUNT(*) AS n FROM visits WHERE cost BETWEEN 10.5 AND 99.99;
--> accepted
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT COUNT(*) AS n FROM visits WHERE cost NOT BETWEEN 10 AND 20;
--> accepted
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT COUNT(*) AS n FROM visits WHERE city IN ('york', 'hull') AND doctor NOT IN ('Adams');
--> accepted
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT COUNT(*) AS n FROM visits WHERE note LIKE '%fever%' AND note NOT LIKE 'no %';
--> accepted
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT COUNT(*) AS n FROM visits WHERE doctor IS NULL OR cost IS NOT NULL;
--> accepted
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT COUNT(*) AS n FROM visits WHERE paid IS TRUE AND (age > 60) IS NOT FALSE;
--> accepted
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT COUNT(*) AS n FROM visits WHERE day >= DATE '2026-01-01' AND day + INTERVAL '7' DAY < DATE '2026-02-01';
--> accepted
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT COUNT(*) AS n FROM visits WHERE arrived < TIMESTAMP '2026-01-01 12:00:00';
--> accepted
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT COUNT(*) AS n FROM visits WHERE cost > age * 10 OR LENGTH(note) > 100;
--> accepted
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

-- The unit may be looked at: the answer hides any one person all the same.
SELECT COUNT(*) AS n FROM visits WHERE patient_id = 4711;
--> accepted
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT COUNT(*) FROM visits WHERE age = 'old';
--> refused Q10

-- A text that is compared with a day is a day.
SELECT COUNT(*) FROM visits WHERE day < '2026-02-01';
--> accepted
--> values: count = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT COUNT(*) FROM visits WHERE age;
--> refused Q10

SELECT COUNT(*) FROM visits WHERE COUNT(*) > 3;
--> refused Q25

SELECT COUNT(*) FROM visits WHERE doctor IN (note, 'Adams');
--> refused Q31

SELECT COUNT(*) FROM visits WHERE doctor IN ('Adams', NULL);
--> refused Q31

SELECT COUNT(*) FROM visits WHERE note LIKE doctor;
--> refused Q31

SELECT COUNT(*) FROM visits WHERE note LIKE 'a!%' ESCAPE '!';
--> refused Q11

SELECT COUNT(*) FROM visits WHERE note ILIKE 'a%';
--> accepted
--> values: count = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT COUNT(*) FROM visits WHERE note SIMILAR TO 'a%';
--> refused Q11

SELECT COUNT(*) FROM visits WHERE REGEXP_MATCHES(note, '(a+)+$');
--> accepted
--> values: count = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT COUNT(*) FROM visits WHERE note COLLATE nocase = 'a';
--> refused Q11

SELECT COUNT(*) FROM visits WHERE day > DATE '2026-02-30';
--> refused Q31

SELECT COUNT(*) FROM visits WHERE day > CURRENT_DATE;
--> accepted
--> values: count = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT COUNT(*) FROM visits WHERE day + INTERVAL '1' MONTH > DATE '2026-01-01';
--> accepted
--> values: count = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT COUNT(*) FROM visits WHERE age IS DISTINCT FROM 3;
--> refused Q11

SELECT COUNT(*) FROM visits WHERE age > 99999999999999999999;
--> refused Q31

-- NULL equals nothing.
SELECT COUNT(*) FROM visits WHERE city NOT IN ('york', NULL);
--> refused Q31

-- Months end unevenly: from the 31st of January, three later is the 30th of April.
SELECT COUNT(*) FROM visits WHERE day < DATE '2025-01-31' + INTERVAL '3' MONTH;
--> accepted
--> values: count = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace
