-- # Names

SELECT COUNT(*) FROM vists;
--> refused Q6

SELECT AVG(cots) FROM visits;
--> refused Q7

SELECT AVG(p.cost) FROM visits v;
--> refused Q6

SELECT AVG(v.cost.x) FROM visits v;
--> refused Q7

-- Letters may be large or small.
SELECT Count(*) AS n FROM Visits WHERE AGE > 3;
--> accepted
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

-- Backticks and double quotes both name things.
SELECT AVG(`cost`) AS "mean cost" FROM "visits";
--> accepted
--> values: mean cost = AVG(visits.cost)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT COUNT(*) AS "a.b" FROM visits;
--> refused Q34

SELECT COUNT(*) AS "" FROM visits;
--> refused Q34

SELECT COUNT(*) FROM information_schema.tables;
--> refused Q6

SELECT COUNT(*) FROM sqlite_master;
--> refused Q6

SELECT COUNT(*) FROM duckdb_tables();
--> refused Q6
