-- # Rows are never shown

SELECT * FROM visits;
--> refused Q12

SELECT v.* FROM visits AS v;
--> refused Q12

SELECT city, cost FROM visits;
--> refused Q12

SELECT city, cost FROM visits ORDER BY cost DESC LIMIT 1;
--> refused Q12

SELECT cost + 1 FROM visits;
--> refused Q12

SELECT DISTINCT ON (city) city FROM visits;
--> refused Q13

SELECT COUNT(*), cost FROM visits;
--> refused Q24

SELECT ANY_VALUE(cost) FROM visits;
--> refused Q32

SELECT ARRAY_AGG(cost) FROM visits;
--> refused Q32

SELECT STRING_AGG(note, ',') FROM visits;
--> refused Q32

SELECT FIRST(cost) FROM visits;
--> refused Q32

SELECT ARG_MAX(doctor, cost) FROM visits;
--> refused Q32

FROM visits;
--> refused Q12

SELECT 1;
--> refused Q26

SELECT COUNT(*) FROM cities;
--> refused Q26
