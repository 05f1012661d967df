-- # Distances from properties: how many people stand in the way

-- Of several rows a person, too: one person moves it by one.
SELECT DISTANCE_TO_SORTED(cost, day) AS late FROM visits;
--> accepted
--> values: late = DISTANCE_TO_SORTED(visits.cost, visits.day)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.12246, δ = 0; Laplace

SELECT DISTANCE_TO_DEPENDENCY(city, doctor) AS moved FROM visits;
--> accepted
--> values: moved = DISTANCE_TO_DEPENDENCY(visits.city, visits.doctor)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.12246, δ = 0; Laplace

SELECT DISTANCE_TO_DEPENDENCY(city, doctor, day) AS moved FROM visits WHERE paid;
--> accepted
--> values: moved = DISTANCE_TO_DEPENDENCY(visits.city, visits.doctor, visits.day)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.12246, δ = 0; Laplace

SELECT DISTANCE_TO_CLUSTERS(cost, 3, 12.5) AS scattered FROM visits;
--> accepted
--> values: scattered = DISTANCE_TO_CLUSTERS(visits.cost, 3, 12.5)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.12246, δ = 0; Laplace

-- Single rows decide: the same as COUNT(DISTINCT patient_id) under a condition.
SELECT DISTANCE_TO_MAXIMUM(cost, 4000) AS dear FROM visits;
--> accepted
--> values: dear = COUNT(DISTINCT visits.patient_id) FILTER(WHERE visits.cost > 4000)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.12246, δ = 0; Laplace

SELECT DISTANCE_TO_MAXIMUM(cost, 4000) FILTER (WHERE paid), DISTANCE_TO_SORTED(age, day) FROM visits;
--> accepted
--> values: distance_to_maximum = COUNT(DISTINCT visits.patient_id) FILTER(WHERE visits.cost > 4000 AND visits.paid), distance_to_sorted_age = DISTANCE_TO_SORTED(visits.age, visits.day)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.0621766, δ = 0; Laplace, Laplace

SELECT DISTANCE_TO_REFERENCE(patient_id, patients, patient_id) AS unknown FROM visits;
--> accepted
--> values: unknown = COUNT(DISTINCT visits.patient_id) FILTER(WHERE NOT (visits.patient_id IS NULL) AND looked up.member IS NULL AND NOT (visits.patient_id IS NULL))
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.12246, δ = 0; Laplace

-- In groups a person is in the way of each that they are in.
SELECT city, DISTANCE_TO_DEPENDENCY(doctor, day) AS d, COUNT(*) AS n FROM visits GROUP BY city;
--> accepted
--> groups: city (3 public and NULL)
--> values: d = DISTANCE_TO_DEPENDENCY(visits.doctor, visits.day), n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.499993, ρ = 0.0693546, δ = 0; Laplace, Laplace

SELECT DISTANCE_TO_SORTED(birth_year, patient_id) * 2 AS twice FROM patients ORDER BY twice;
--> accepted
--> values: distance_to_sorted_birth_year = DISTANCE_TO_SORTED(patients.birth_year, patients.patient_id)
--> after: computed twice, ORDER BY
--> rows: at most 1 of one unit
--> price: ε = 0.5, ρ = 0.12246, δ = 0; Laplace

SELECT DISTANCE_TO_SORTED(cost) FROM visits;
--> refused Q33

SELECT DISTANCE_TO_SORTED(DISTINCT cost, day) FROM visits;
--> refused Q33

SELECT DISTANCE_TO_CLUSTERS(city, 3, 12) FROM visits;
--> refused Q33

SELECT DISTANCE_TO_CLUSTERS(cost, 0, 12) FROM visits;
--> refused Q33

SELECT DISTANCE_TO_CLUSTERS(cost, 2, -1) FROM visits;
--> refused Q33

SELECT DISTANCE_TO_CLUSTERS(cost, age, 12) FROM visits;
--> refused Q33

-- Values are clipped to 5000: nobody is above.
SELECT DISTANCE_TO_MAXIMUM(cost, 5000) FROM visits;
--> refused Q33

-- Whether anybody else's row is there would decide.
SELECT DISTANCE_TO_REFERENCE(age, patients, birth_year) FROM visits;
--> refused Q15

SELECT DISTANCE_TO_SORTED(cost, day) OVER () FROM visits;
--> refused Q14
