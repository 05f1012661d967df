-- hospital
SELECT sex, COUNT(*) AS n, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS pct FROM patients GROUP BY sex;
SELECT ward, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS place FROM admissions WHERE ward IN ('cardio', 'ortho', 'neuro', 'general') GROUP BY ward;
WITH m AS (SELECT date_trunc('quarter', admitted) AS q, COUNT(*) AS n FROM admissions GROUP BY 1) SELECT q, n, n - LAG(n) OVER (ORDER BY q) AS growth FROM m WHERE n > 50 ORDER BY q;
WITH m AS (SELECT EXTRACT(YEAR FROM day) AS y, SUM(cost) AS total FROM admissions GROUP BY 1) SELECT y, SUM(total) OVER (ORDER BY y) AS so_far FROM m WHERE total > 100000;
SELECT 'patients' AS what, COUNT(*) AS n FROM patients UNION ALL SELECT 'stays', COUNT(*) FROM admissions;
SELECT city FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) AS a WHERE n > 100 EXCEPT SELECT city FROM (SELECT city, COUNT(*) AS n FROM patients WHERE NOT insured GROUP BY city) AS b WHERE n > 60;
SELECT city FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) AS a WHERE n > 100 INTERSECT SELECT 'Lyon';
WITH a AS (SELECT ward, COUNT(*) AS n FROM admissions GROUP BY ward), e AS (SELECT ward, COUNT(*) AS urgent FROM admissions WHERE emergency GROUP BY ward) SELECT a.ward, urgent / n AS share FROM a JOIN e ON a.ward = e.ward WHERE n > 10;
SELECT COUNT(*) * 1.0 / (SELECT COUNT(*) FROM patients) AS per_patient FROM admissions;
SELECT ward, AVG(cost) AS mean FROM admissions GROUP BY ward HAVING AVG(cost) > 0.5 * (SELECT AVG(cost) FROM admissions);
SELECT sex, insured, COUNT(*) AS n, GROUPING(sex, insured) AS level FROM patients GROUP BY ROLLUP (sex, insured);
SELECT sex, insured, COUNT(*) AS n FROM patients GROUP BY CUBE (sex, insured) ORDER BY n DESC;
SELECT sex, insured, COUNT(*) FROM patients GROUP BY GROUPING SETS ((sex), (insured), ());
SELECT w.building, a.emergency, COUNT(*), SUM(a.cost), AVG(a.cost) FROM admissions a JOIN wards w ON w.ward = a.ward GROUP BY ROLLUP (w.building, a.emergency) HAVING COUNT(*) > 20;
SELECT CASE WHEN GROUPING(sex) = 1 THEN 'all' ELSE sex END AS sex, COUNT(*) AS n FROM patients GROUP BY ROLLUP (sex);
SELECT emergency, COUNT(DISTINCT patient_id) AS people FROM admissions GROUP BY ROLLUP (emergency);
SELECT EXTRACT(YEAR FROM day) AS y, EXTRACT(QUARTER FROM day) AS q, COUNT(*) AS n FROM admissions GROUP BY ROLLUP (EXTRACT(YEAR FROM day), EXTRACT(QUARTER FROM day)) HAVING COUNT(*) > 10;
SELECT MAX(n) AS busiest FROM (SELECT ward, COUNT(*) AS n FROM admissions GROUP BY ward) AS s;
SELECT ward, n FROM (SELECT ward, COUNT(*) AS n FROM admissions GROUP BY ward) AS s QUALIFY ROW_NUMBER() OVER (ORDER BY n DESC) = 1;
-- flights
SELECT cabin, SUM(price) AS revenue, RATIO_TO_REPORT(SUM(price)) OVER () AS share FROM bookings GROUP BY cabin;
--> duckdb: SELECT cabin, SUM(price) AS revenue, SUM(price) / SUM(SUM(price)) OVER () AS share FROM bookings GROUP BY cabin
SELECT o.country, b.cabin, COUNT(*) FROM bookings b JOIN airports o ON b.origin = o.iata GROUP BY CUBE (o.country, b.cabin) HAVING COUNT(*) > 30;
SELECT cabin, date_trunc('quarter', departed) AS q, SUM(seats) AS seats FROM bookings GROUP BY cabin, ROLLUP (date_trunc('quarter', departed)) HAVING SUM(seats) > 50;
WITH spend AS (SELECT customer_id, SUM(price) AS total FROM bookings GROUP BY customer_id), bands AS (SELECT CASE WHEN total < 500 THEN 'low' WHEN total < 1500 THEN 'middle' ELSE 'high' END AS band, COUNT(*) AS n FROM spend GROUP BY 1) SELECT band, n, n / SUM(n) OVER () AS share FROM bands WHERE n > 5;
SELECT a.city, s.n FROM airports a LEFT JOIN (SELECT origin, COUNT(*) AS n FROM bookings GROUP BY origin) AS s ON s.origin = a.iata;
SELECT cabin, COUNT(*) AS n FROM bookings GROUP BY cabin UNION ALL SELECT 'total', COUNT(*) FROM bookings ORDER BY n;
SELECT (SELECT COUNT(*) FROM bookings WHERE cabin = 'business') AS business, (SELECT COUNT(*) FROM bookings WHERE cabin = 'economy') AS economy;
SELECT ARG_MAX(cabin, n) AS most FROM (SELECT cabin, COUNT(*) AS n FROM bookings GROUP BY cabin);
SELECT DISTINCT n > 500 AS many FROM (SELECT cabin, COUNT(*) AS n FROM bookings GROUP BY cabin);
SELECT cabin, COUNT(*) AS n, COUNT(*) - AVG(COUNT(*)) OVER () AS above_mean FROM bookings GROUP BY cabin;
-- ratings
SELECT device, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY device) AS running FROM ratings GROUP BY device;
SELECT m.genre, r.device, COUNT(*) AS n FROM ratings r JOIN movies m ON m.movie_id = r.movie_id GROUP BY ROLLUP (m.genre, r.device) HAVING COUNT(*) > 20;
SELECT u.gender, COUNT(*) AS n, AVG(r.stars) AS stars FROM ratings r JOIN users u ON u.user_id = r.user_id GROUP BY GROUPING SETS ((u.gender), ());
SELECT device, n, NTILE(3) OVER (ORDER BY n) AS third FROM (SELECT device, COUNT(*) AS n FROM ratings GROUP BY device) AS s;
WITH y AS (SELECT year(rated_at) AS y, COUNT(*) AS n FROM ratings GROUP BY 1) SELECT a.y, a.n, b.n AS before FROM y AS a LEFT JOIN y AS b ON b.y = a.y - 1 WHERE a.n > 50;
SELECT gender, COUNT(*) AS n FROM users GROUP BY gender HAVING COUNT(*) > (SELECT COUNT(*) / 4 FROM users);
SELECT gender, device, COUNT(*) FROM ratings JOIN users USING (user_id) GROUP BY gender, device UNION ALL SELECT NULL, device, COUNT(*) FROM ratings GROUP BY device;
-- library
SELECT genre, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS rk FROM loans GROUP BY genre;
SELECT genre, COUNT(*) AS n, ROUND(100.0 * COUNT(*) / SUM(COUNT(*)) OVER (), 1) AS pct FROM loans GROUP BY genre;
SELECT branch, genre, COUNT(*) AS n FROM loans GROUP BY ROLLUP (branch, genre);
SELECT COUNT(*) AS n FROM loans WHERE fine > (SELECT AVG(fine) FROM loans);
SELECT branch, SUM(fine) AS total, SUM(SUM(fine)) OVER (ORDER BY branch) AS running FROM loans GROUP BY branch;
SELECT branch, MAX_BY(genre, n) AS top FROM (SELECT branch, genre, COUNT(*) AS n FROM loans GROUP BY branch, genre) t GROUP BY branch;
SELECT genre, COUNT(*) AS n FROM loans GROUP BY genre HAVING COUNT(*) > (SELECT COUNT(*) / 4 FROM loans);
SELECT * FROM loans PIVOT (COUNT(*) FOR branch IN ('central', 'mill') GROUP BY genre);
--> duckdb: SELECT genre, COUNT(*) FILTER (WHERE branch = 'central'), COUNT(*) FILTER (WHERE branch = 'mill') FROM loans GROUP BY genre
SELECT genre, COUNT(*) AS n, n / SUM(n) OVER () AS share FROM loans GROUP BY genre;
--> duckdb: SELECT genre, COUNT(*) AS n, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM loans GROUP BY genre
-- gym
SELECT COUNT(*) FROM checkins c WHERE minutes > (SELECT AVG(minutes) FROM checkins d WHERE d.activity = c.activity);
SELECT c.activity, COUNT(*) FROM checkins c JOIN (SELECT activity, AVG(minutes) AS mean FROM checkins GROUP BY activity) a ON a.activity = c.activity WHERE c.minutes > a.mean GROUP BY c.activity;
WITH m AS (SELECT activity, club, AVG(minutes) AS mean FROM checkins WHERE NOT guest GROUP BY activity, club) SELECT COUNT(*) FROM checkins c JOIN m ON m.activity = c.activity AND m.club = c.club WHERE c.minutes < m.mean + 0.15 AND c.minutes > 10;
SELECT COUNT(*) FROM members m WHERE weight > 0.03 + (SELECT AVG(n.weight) FROM members n WHERE n.plan = m.plan AND n.sex = m.sex);
PIVOT checkins ON activity USING COUNT(*) GROUP BY club;
--> duckdb: SELECT club, COUNT(*) FILTER (activity = 'weights'), COUNT(*) FILTER (activity = 'swim'), COUNT(*) FILTER (activity = 'yoga'), COUNT(*) FILTER (activity = 'spin') FROM checkins GROUP BY club
SELECT SKEWNESS(n) FROM (SELECT activity, COUNT(*) AS n FROM checkins GROUP BY activity);
SELECT generate_series, (SELECT COUNT(*) FROM checkins) FROM generate_series(1, 3);
