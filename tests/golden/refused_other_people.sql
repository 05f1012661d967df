-- # Expressions that look at other people's rows

SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT 1 FROM patients);
--> refused Q15

SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM patients p WHERE p.patient_id = v.patient_id);
--> accepted
--> values: count = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

-- The mean is a question of its own, asked first; then it is a constant.
SELECT COUNT(*) FROM visits WHERE cost > (SELECT AVG(cost) FROM visits);
--> accepted
--> question 1: SELECT COUNT(*) AS count FROM visits AS visits WHERE visits.cost > CAST(NULL AS DOUBLE)
--> question 2: SELECT AVG(visits.cost) AS avg_cost FROM visits AS visits
--> computed: SELECT * FROM question.1

SELECT COUNT(*) FROM visits WHERE patient_id IN (SELECT patient_id FROM patients WHERE sex = 'f');
--> accepted
--> values: count = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT COUNT(*) FROM visits WHERE cost >= ALL (SELECT cost FROM visits);
--> refused Q15

SELECT COUNT(*) FROM visits WHERE cost = ANY (SELECT cost FROM visits);
--> refused Q15

SELECT (SELECT COUNT(*) FROM patients) AS n, COUNT(*) FROM visits;
--> accepted
--> question 1: SELECT COUNT(*) AS count FROM patients AS patients
--> question 2: SELECT COUNT(*) AS count FROM visits AS visits
--> computed: SELECT (SELECT * FROM question.1) AS n, count AS count FROM question.2
--> price: ε = 0.5, ρ = 0.12246, δ = 0; Laplace / ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT city, RANK() OVER (ORDER BY COUNT(*)) FROM visits GROUP BY city;
--> accepted
--> question 1: SELECT visits.city AS city, COUNT(*) AS count FROM visits AS visits GROUP BY visits.city
--> computed: SELECT city AS city, RANK() OVER (ORDER BY count) AS column_2 FROM question.1
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT AVG(cost) OVER (PARTITION BY city) FROM visits;
--> refused Q14

SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (ORDER BY cost) AS r FROM visits) AS s WHERE r < 10;
--> refused Q14

SELECT COUNT(*) FROM visits TABLESAMPLE (10 PERCENT);
--> refused Q17

SELECT COUNT(*) FROM visits USING SAMPLE 10;
--> refused Q17

SELECT COUNT(*) FROM visits FOR UPDATE;
--> refused Q11

SELECT * FROM visits PIVOT (COUNT(*) FOR city IN ('york', 'hull'));
--> refused Q11

SELECT COUNT(*) FROM UNNEST(ARRAY[1, 2]) AS u;
--> refused Q19

-- Joins with the patients, and with the public cities, ask these.
SELECT COUNT(*) FROM visits WHERE patient_id NOT IN (SELECT patient_id FROM patients WHERE sex = 'f');
--> accepted
--> values: count = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM cities c WHERE c.name = v.city AND c.region = 'north');
--> accepted
--> values: count = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

-- One person's own dearest visit: also a join.
SELECT COUNT(*) FROM visits v WHERE v.cost = (SELECT MAX(w.cost) FROM visits w WHERE w.patient_id = v.patient_id);
--> accepted
--> values: count = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace
