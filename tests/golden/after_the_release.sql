-- # What is computed from released values is free

SELECT city, COUNT(*) AS n FROM visits GROUP BY city HAVING COUNT(*) > 100;
--> accepted
--> groups: city (3 public and NULL)
--> values: n = COUNT(*)
--> after: HAVING
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

-- HAVING may use the name.
SELECT city, COUNT(*) AS n, AVG(cost) AS mean FROM visits GROUP BY city HAVING n > 100 AND mean < 500;
--> accepted
--> groups: city (3 public and NULL)
--> values: n = COUNT(*), mean = AVG(visits.cost)
--> after: HAVING
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT city, COUNT(*) AS n FROM visits GROUP BY city ORDER BY n DESC, city LIMIT 2;
--> accepted
--> groups: city (3 public and NULL)
--> values: n = COUNT(*)
--> after: ORDER BY, LIMIT 2
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT city, SUM(cost) / COUNT(*) AS mean, ROUND(100 * COUNTIF(paid) / COUNT(*), 1) AS paid_percent FROM visits GROUP BY city;
--> accepted
--> groups: city (3 public and NULL)
--> values: sum_cost = SUM(visits.cost), count = COUNT(*), count_2 = COUNT(*) FILTER(WHERE visits.paid)
--> after: computed mean, paid_percent
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.0576074, δ = 0; Laplace, Laplace

SELECT city, COUNT(*) AS n FROM visits GROUP BY city ORDER BY ABS(AVG(cost) - 100);
--> accepted
--> groups: city (3 public and NULL)
--> values: n = COUNT(*), avg_cost = AVG(visits.cost)
--> after: ORDER BY
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT CASE WHEN COUNT(*) > 1000 THEN 'many' ELSE 'few' END AS size FROM visits;
--> accepted
--> values: count = COUNT(*)
--> after: computed size
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT UPPER(city) AS place, COUNT(*) AS n FROM visits GROUP BY city;
--> accepted
--> groups: city (3 public and NULL)
--> values: n = COUNT(*)
--> after: computed place
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT 'visits' AS what, COUNT(*) AS n, 2026 AS year FROM visits;
--> accepted
--> values: n = COUNT(*)
--> after: computed what, year
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

-- Also as a SELECT around the question.
SELECT city, n / 2 AS half FROM (SELECT city, COUNT(*) AS n FROM visits GROUP BY city) AS s WHERE n > 100 ORDER BY half DESC LIMIT 5;
--> accepted
--> groups: city (3 public and NULL)
--> values: count = COUNT(*)
--> after: computed half, HAVING, ORDER BY, LIMIT 5
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

WITH counts AS (SELECT city, COUNT(*) AS n FROM visits GROUP BY city) SELECT * FROM counts WHERE n > 10;
--> accepted
--> groups: city (3 public and NULL)
--> values: n = COUNT(*)
--> after: HAVING
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT MAX(n) FROM (SELECT city, COUNT(*) AS n FROM visits GROUP BY city) AS s;
--> refused Q22

SELECT city, COUNT(*) AS n FROM visits GROUP BY city ORDER BY n NULLS FIRST;
--> refused Q11

SELECT city, COUNT(*) AS n FROM visits GROUP BY city LIMIT 5 OFFSET 2;
--> refused Q11

SELECT city, COUNT(*) AS n FROM visits GROUP BY city LIMIT age;
--> refused Q31

SELECT city, COUNT(*) AS n FROM visits GROUP BY city ORDER BY age;
--> refused Q24

SELECT city + COUNT(*) FROM visits GROUP BY city;
--> refused Q10

SELECT city, COUNT(*) AS n FROM visits GROUP BY city HAVING n;
--> refused Q10

SELECT city, COUNT(*) AS n FROM visits GROUP BY city QUALIFY RANK() OVER (ORDER BY n) = 1;
--> refused Q14

SELECT COUNT(*) AS n, AVG(age) AS n FROM visits;
--> refused Q8

SELECT city, x FROM (SELECT city, COUNT(*) AS n FROM visits GROUP BY city) AS s;
--> refused Q7
