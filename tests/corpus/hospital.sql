-- postgres
SELECT COUNT(*) FROM patients;
SELECT COUNT(DISTINCT patient_id) FROM admissions;
SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex ORDER BY n DESC;
SELECT ward, COUNT(*) AS stays, AVG(cost) AS mean_cost FROM admissions GROUP BY ward;
SELECT ward, SUM(cost) FROM public.admissions GROUP BY ward HAVING SUM(cost) > 1000;
SELECT city, COUNT(*) FROM patients WHERE birth_date < '1960-01-01' GROUP BY city;
SELECT COUNT(*) FROM admissions WHERE admitted >= '2024-01-01' AND admitted < '2024-07-01';
SELECT COUNT(*) FROM admissions WHERE day BETWEEN '2024-03-01' AND '2024-03-31';
SELECT date_trunc('month', admitted) AS month, COUNT(*) FROM admissions GROUP BY 1 ORDER BY 1;
SELECT EXTRACT(YEAR FROM admitted) AS y, COUNT(*) FROM admissions GROUP BY y;
SELECT EXTRACT(DOW FROM admitted) AS weekday, COUNT(*) FROM admissions GROUP BY weekday;
SELECT EXTRACT(HOUR FROM admitted) AS h, COUNT(*) FROM admissions GROUP BY h;
SELECT to_char(admitted, 'YYYY-MM') AS month, SUM(cost) FROM admissions GROUP BY month;
SELECT AVG(EXTRACT(EPOCH FROM (discharged - admitted)) / 86400) AS days FROM admissions;
SELECT COUNT(*) FROM admissions WHERE discharged - admitted > INTERVAL '7 days';
SELECT COUNT(*) FROM admissions WHERE discharged::date - admitted::date >= 7;
SELECT AVG(discharged::date - day) AS days FROM admissions;
SELECT ward, AVG(DATE '2025-07-01' - day) FROM admissions GROUP BY ward;
SELECT AVG(EXTRACT(YEAR FROM AGE(DATE '2025-01-01', birth_date))) AS age FROM patients;
SELECT COUNT(*) FROM patients WHERE EXTRACT(YEAR FROM AGE(DATE '2025-01-01', birth_date)) >= 65;
SELECT COUNT(*) FROM patients WHERE birth_date > DATE '2025-01-01' - INTERVAL '18 years';
SELECT p.city, AVG(a.cost) FROM admissions a JOIN patients p ON p.patient_id = a.patient_id GROUP BY p.city;
SELECT p.sex, COUNT(*) FROM patients p LEFT JOIN admissions a USING (patient_id) GROUP BY p.sex;
SELECT COUNT(*) FROM admissions WHERE ward NOT IN (SELECT ward FROM wards WHERE floor = 2) AND ward IS NOT NULL;
SELECT COUNT(*) FROM admissions s WHERE NOT EXISTS (SELECT 1 FROM wards w WHERE w.ward = s.ward AND w.floor = 1);
SELECT COUNT(*) FROM admissions s WHERE EXISTS (SELECT 1 FROM wards w WHERE w.ward = s.ward AND w.floor = 1) OR s.emergency;
SELECT w.building, COUNT(*) FROM admissions a JOIN (SELECT ward, building FROM wards WHERE floor > 1) w ON a.ward = w.ward GROUP BY w.building;
SELECT p.sex, COUNT(*), COUNT(a.patient_id) AS urgent FROM patients p LEFT JOIN admissions a ON a.patient_id = p.patient_id AND a.emergency AND a.ward <> 'neuro' GROUP BY p.sex;
SELECT COUNT(*) FROM admissions a RIGHT JOIN patients p ON (A.emergency AND a.patient_id = p.patient_id) WHERE a.patient_id IS NULL;
SELECT COUNT(*) FROM patients p WHERE EXISTS (SELECT 1 FROM admissions a WHERE a.patient_id = p.patient_id AND a.ward = 'cardio');
SELECT COUNT(*) FROM patients p WHERE NOT EXISTS (SELECT 1 FROM admissions a WHERE a.patient_id = p.patient_id AND a.emergency);
SELECT sex, COUNT(*) FROM patients WHERE patient_id IN (SELECT patient_id FROM admissions WHERE cost > 5000) GROUP BY sex;
SELECT COUNT(*) FROM patients WHERE patient_id NOT IN (SELECT patient_id FROM admissions WHERE ward = 'neuro');
SELECT s.ward, COUNT(*) FROM admissions s WHERE EXISTS (SELECT 1 FROM admissions b WHERE b.patient_id = s.patient_id AND b.admitted > s.admitted) GROUP BY s.ward;
SELECT COUNT(*) FROM admissions s WHERE EXISTS (SELECT 1 FROM admissions b WHERE b.patient_id = s.patient_id AND b.ward <> s.ward);
SELECT COUNT(*) FROM admissions s WHERE NOT EXISTS (SELECT 1 FROM admissions b WHERE b.patient_id = s.patient_id AND s.admitted > B.admitted AND b.emergency);
SELECT COUNT(*) FROM admissions s WHERE (SELECT COUNT(*) FROM admissions b WHERE b.patient_id = s.patient_id AND b.admitted < s.admitted) = 0;
SELECT COUNT(*) FROM admissions s WHERE (SELECT COUNT(*) FROM admissions b WHERE b.patient_id = s.patient_id AND b.cost >= s.cost + 500) > 0 OR s.emergency;
SELECT COUNT(*) FROM admissions s WHERE EXISTS (SELECT 1 FROM patients p WHERE p.patient_id = s.patient_id AND p.birth_date < s.day - INTERVAL '65 years');
SELECT COUNT(*) FROM patients p WHERE EXISTS (SELECT 1 FROM admissions b WHERE b.patient_id = p.patient_id AND EXISTS (SELECT 1 FROM admissions c WHERE c.patient_id = p.patient_id AND c.day > b.day AND c.ward = 'neuro'));
SELECT COUNT(*) FROM admissions a WHERE a.cost > (SELECT AVG(b.cost) FROM admissions b WHERE b.patient_id = a.patient_id);
SELECT COUNT(*) FROM admissions a, patients p WHERE a.patient_id = p.patient_id AND p.sex = 'f';
SELECT COUNT(*) FROM (SELECT patient_id, LAG(discharged) OVER (PARTITION BY patient_id ORDER BY admitted) AS before, admitted FROM admissions) t WHERE admitted - before < INTERVAL '30 days';
WITH ordered AS (SELECT patient_id, ward, ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY admitted) AS rn FROM admissions) SELECT ward, COUNT(*) FROM ordered WHERE rn = 1 GROUP BY ward;
WITH totals AS (SELECT patient_id, SUM(cost) AS total FROM admissions GROUP BY patient_id) SELECT AVG(total) FROM totals;
WITH stays AS (SELECT patient_id, COUNT(*) AS n FROM admissions GROUP BY patient_id) SELECT n, COUNT(*) AS people FROM stays GROUP BY n ORDER BY n;
SELECT w.building, COUNT(*) FROM admissions a JOIN wards w ON w.ward = a.ward GROUP BY w.building;
SELECT c.chapter, AVG(a.cost) FROM admissions a JOIN codes c ON a.code = c.code GROUP BY c.chapter;
SELECT COUNT(*) FROM admissions WHERE code IN (SELECT code FROM codes WHERE severity >= 4);
SELECT COUNT(*) FILTER (WHERE emergency) AS urgent, COUNT(*) AS n FROM admissions;
SELECT ward, AVG(CASE WHEN emergency THEN 1.0 ELSE 0 END) AS share FROM admissions GROUP BY ward;
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY cost) FROM admissions;
SELECT STDDEV(cost), VARIANCE(cost) FROM admissions;
SELECT COUNT(*) FROM admissions WHERE doctor ILIKE '%blanc%';
SELECT COUNT(*) FROM admissions WHERE doctor ~ '^Dr\. [AB]';
SELECT split_part(doctor, ' ', 2) AS name, COUNT(*) FROM admissions GROUP BY 1;
SELECT LEFT(code, 1) AS letter, COUNT(*) FROM admissions GROUP BY letter;
SELECT COALESCE(ward, 'unknown') AS w, COUNT(*) FROM admissions GROUP BY w;
SELECT COUNT(*) FROM (SELECT DISTINCT patient_id, ward FROM admissions) d;
SELECT CASE WHEN cost < 1000 THEN 'low' WHEN cost < 4000 THEN 'mid' ELSE 'high' END AS band, COUNT(*) FROM admissions GROUP BY band;
SELECT corr(EXTRACT(EPOCH FROM admitted), EXTRACT(EPOCH FROM discharged)) FROM admissions;
SELECT COUNT(*) FROM (SELECT patient_id, MIN(admitted) AS first, MAX(admitted) AS last FROM admissions GROUP BY patient_id) s WHERE last - first > INTERVAL '365 days';
SELECT COUNT(*) FROM admissions WHERE admitted + INTERVAL '2 hours' > discharged - INTERVAL '1 day';
SELECT insured, COUNT(*) FROM patients GROUP BY insured;
SELECT COUNT(*) FROM patients WHERE insured = TRUE AND city IN ('Lyon', 'Lille');
-- duckdb
SELECT COUNT(*) FROM admissions WHERE LPAD(ward, 7, '.') = '.cardio';
SELECT RPAD(ward, 9, '-') AS w, COUNT(*) AS n FROM admissions WHERE ward = 'ortho' GROUP BY w;
SELECT COUNT(*) FROM admissions WHERE LPAD(code, 2, '0') = 'I2' AND RPAD(ward, 2, ' ') = 'ca';
SELECT COUNT(*) FROM admissions WHERE code[1] = 'I';
SELECT COUNT(*) FROM admissions AS a WHERE cost = (SELECT AVG(b.cost) FROM admissions AS b WHERE b.patient_id = a.patient_id);
SELECT ward, count(*) FROM admissions GROUP BY ALL ORDER BY 1;
SELECT date_diff('day', admitted, discharged) AS days, count(*) FROM admissions WHERE date_diff('day', admitted, discharged) < 20 GROUP BY days;
SELECT avg(date_diff('hour', admitted, discharged)) FROM admissions;
SELECT avg(date_sub('week', admitted, discharged)) FROM admissions;
SELECT avg(date_diff('week', admitted, discharged)) FROM admissions;
SELECT date_diff('week', day, DATE '2024-01-01') AS w, count(*) FROM admissions WHERE day > DATE '2023-10-01' AND day < DATE '2024-03-01' GROUP BY w;
SELECT strftime(admitted, '%Y-%m') AS m, count(*) FROM admissions GROUP BY m;
SELECT dayname(admitted) AS d, count(*) FROM admissions GROUP BY d;
SELECT monthname(day) AS m, sum(cost) FROM admissions GROUP BY m;
SELECT year(admitted) AS y, quarter(admitted) AS q, count(*) FROM admissions GROUP BY y, q;
SELECT quantile_cont(cost, 0.9) FROM admissions;
SELECT median(cost) FROM admissions WHERE ward = 'ortho';
SELECT count_if(emergency) FROM admissions;
SELECT sum(emergency::INT) FROM admissions;
SELECT sum(emergency) FROM admissions;
SELECT any_value(ward) AS ward, count(*) FROM admissions GROUP BY ward;
SELECT count(*) FROM admissions WHERE regexp_matches(code, '^I[0-9]+$');
FROM admissions SELECT ward, avg(cost) GROUP BY ward;
SELECT count(*) FROM (FROM admissions SELECT * QUALIFY row_number() OVER (PARTITION BY patient_id ORDER BY admitted DESC) = 1) WHERE ward = 'general';
SELECT avg(gap) FROM (SELECT date_diff('day', lag(day) OVER (PARTITION BY patient_id ORDER BY admitted), day) AS gap FROM admissions) WHERE gap IS NOT NULL;
SELECT avg(running) FROM (SELECT patient_id, sum(cost) OVER (PARTITION BY patient_id ORDER BY admitted ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS running FROM admissions);
SELECT floor(cost / 1000) * 1000 AS bin, count(*) FROM admissions GROUP BY bin;
SELECT count(*) FROM admissions WHERE last_day(day) = day;
SELECT last_day(day) AS month_end, count(*) FROM admissions GROUP BY 1;
SELECT count(*) FROM admissions NATURAL JOIN patients;
SELECT p.sex, count(a.ward) FROM admissions a RIGHT JOIN patients p USING (patient_id) GROUP BY p.sex;
SELECT count(*) FROM admissions a FULL JOIN patients p ON a.patient_id = p.patient_id;
SELECT w.building, count(a.patient_id) AS n FROM wards w LEFT JOIN admissions a ON a.ward = w.ward GROUP BY w.building;
SELECT k.ward, count(a.patient_id) AS n FROM (VALUES ('cardio'), ('ortho')) AS k(ward) LEFT JOIN admissions a ON a.ward = k.ward GROUP BY k.ward;
SELECT AVG(CAST(cost AS DECIMAL(10, 1))) FROM admissions;
SELECT COUNT(*) FROM admissions WHERE CAST(cost AS DECIMAL(5, 2)) > 100;
--> duckdb: SELECT COUNT(*) FROM admissions WHERE TRY_CAST(cost AS DECIMAL(5, 2)) > 100
SELECT SUBSTRING(ward FROM 1 FOR 2) AS w, COUNT(*) FROM admissions GROUP BY w;
SELECT COUNT(*) FROM admissions WHERE CAST(ward AS VARCHAR(3)) = 'car';
--> duckdb: SELECT COUNT(*) FROM admissions WHERE LEFT(ward, 3) = 'car'
SELECT third, AVG(cost) FROM (SELECT patient_id, cost, NTILE(3) OVER (PARTITION BY patient_id ORDER BY admitted, cost) AS third FROM admissions) GROUP BY third;
SELECT HOUR(admitted AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Paris') AS h, COUNT(*) FROM admissions GROUP BY h;
SELECT COUNT(*) FROM admissions WHERE EXTRACT(MONTH FROM admitted AT TIME ZONE 'UTC' AT TIME ZONE 'Asia/Tokyo') = 3;
-- bigquery
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1000000, delta = 1e-9, min_privacy_units_per_group = 5) ward, COUNT(*) AS n FROM admissions GROUP BY ward;
--> duckdb: SELECT ward, COUNT(*) FROM admissions GROUP BY ward HAVING COUNT(DISTINCT patient_id) >= 5
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1000000, delta = 1e-9, group_selection_strategy = PUBLIC_GROUPS) ward, COUNT(*) AS n FROM admissions GROUP BY ward;
--> duckdb: SELECT ward, COUNT(*) FROM admissions GROUP BY ward
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1000000, delta = 1e-9) AVG(cost, contribution_bounds_per_group => (0, 5000)) AS m FROM admissions;
--> duckdb: SELECT AVG(LEAST(m, 5000)) FROM (SELECT AVG(cost) AS m FROM admissions GROUP BY patient_id)
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1000000, delta = 1e-9, max_groups_contributed = 4) ward, AVG(cost, contribution_bounds_per_group => (0, 20000)) AS m FROM admissions GROUP BY ward;
--> duckdb: SELECT ward, AVG(m) FROM (SELECT ward, AVG(cost) AS m FROM admissions GROUP BY ward, patient_id) GROUP BY ward
SELECT ward, COUNT(*) AS n FROM `project.hospital.admissions` GROUP BY ward;
SELECT COUNTIF(emergency) AS n FROM admissions;
SELECT DATE_TRUNC(day, MONTH) AS m, COUNT(*) AS n FROM admissions GROUP BY m;
SELECT DATE_TRUNC(day, WEEK) AS w, COUNT(*) AS n FROM admissions WHERE day >= '2025-01-01' GROUP BY w;
--> duckdb: SELECT DATE_TRUNC('week', day + 1) - INTERVAL 1 DAY AS w, COUNT(*) FROM admissions WHERE day >= DATE '2025-01-01' GROUP BY w
SELECT AVG(DATE_DIFF(DATE(discharged), day, DAY)) AS d FROM admissions;
SELECT AVG(TIMESTAMP_DIFF(discharged, admitted, HOUR)) AS h FROM admissions;
--> duckdb: SELECT AVG(DATE_SUB('hour', admitted, discharged)) FROM admissions
SELECT FORMAT_DATE('%Y-%m', day) AS m, COUNT(*) AS n FROM admissions GROUP BY m;
SELECT SAFE_DIVIDE(SUM(cost), COUNT(*)) AS mean FROM admissions;
SELECT COUNT(*) AS n FROM admissions WHERE DATE_ADD(day, INTERVAL 30 DAY) > DATE '2025-06-01';
SELECT COUNT(*) AS n FROM admissions WHERE REGEXP_CONTAINS(code, r'^S');
--> duckdb: SELECT COUNT(*) FROM admissions WHERE code LIKE 'S%'
SELECT IF(emergency, 'urgent', 'planned') AS kind, COUNT(*) AS n FROM admissions GROUP BY kind;
SELECT APPROX_QUANTILES(cost, 4)[OFFSET(2)] AS median FROM admissions;
--> duckdb: SELECT MEDIAN(cost) FROM admissions
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1000000, delta = 1e-9, privacy_unit_column = patient_id) ward, COUNT(*) AS n FROM admissions GROUP BY ward;
--> duckdb: SELECT ward, COUNT(*) FROM admissions GROUP BY ward
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1000000, delta = 1e-9, max_groups_contributed = 4) ward, SUM(cost, contribution_bounds_per_group => (0, 100000)) AS total FROM admissions GROUP BY ward;
--> duckdb: SELECT ward, SUM(cost) FROM admissions GROUP BY ward
-- snowflake
SELECT HOUR(CONVERT_TIMEZONE('UTC', 'America/New_York', admitted)) AS h, COUNT(*) FROM admissions GROUP BY h;
--> duckdb: SELECT HOUR(timezone('America/New_York', timezone('UTC', admitted))) AS h, COUNT(*) FROM admissions GROUP BY h
SELECT TOP 10 ward, COUNT(*) AS n FROM admissions GROUP BY ward ORDER BY n DESC;
SELECT COUNT(*) FROM hospital.public.admissions WHERE DATEDIFF('day', admitted, discharged) > 10;
SELECT COUNT(*) FROM admissions WHERE DATEADD(month, 1, day) > '2025-06-15'::DATE;
SELECT IFF(cost > 3000, 'dear', 'cheap') AS k, COUNT(*) FROM admissions GROUP BY k;
SELECT DATE_TRUNC('quarter', day) AS q, SUM(cost) FROM admissions GROUP BY q;
SELECT COUNT(*) FROM admissions WHERE YEAR(day) = 2024 AND MONTH(day) = 2;
SELECT DIV0(SUM(cost), COUNT(*)) AS mean FROM admissions;
--> duckdb: SELECT SUM(cost) / COUNT(*) FROM admissions
SELECT COUNT(*) FROM (SELECT * FROM admissions QUALIFY ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY admitted) = 1);
SELECT AVG(TIMESTAMPDIFF(MINUTE, admitted, discharged)) FROM admissions;
--> duckdb: SELECT AVG(DATE_DIFF('minute', admitted, discharged)) FROM admissions
-- duckdb
SELECT COUNT(*) FROM admissions JOIN wards USING (ward) WHERE floor > (SELECT AVG(floor) FROM wards);
SELECT COUNT(*) FROM admissions WHERE ward IN (SELECT ward FROM wards ORDER BY floor DESC LIMIT 2);
SELECT COUNT(*) FROM admissions WHERE code IN (SELECT code FROM codes GROUP BY code HAVING MAX(severity) > 3);
SELECT COUNT(*) FROM admissions WHERE ward NOT IN (SELECT MIN(ward) FROM wards GROUP BY building);
WITH w AS (SELECT ward, building FROM wards WHERE floor > 1) SELECT w.building, COUNT(*) FROM admissions a JOIN w ON a.ward = w.ward GROUP BY 1;
WITH w AS (SELECT ward, building FROM wards WHERE floor > 1) SELECT w.building, COUNT(*) FROM admissions a LEFT JOIN w ON a.ward = w.ward GROUP BY 1;
SELECT w.b, COUNT(*) FROM admissions a JOIN (SELECT ward AS wd, building AS b FROM wards) w ON a.ward = w.wd GROUP BY 1;
SELECT w.building, COUNT(*) FROM admissions a JOIN (SELECT ward, MIN(building) AS building FROM wards GROUP BY ward) w ON a.ward = w.ward GROUP BY 1;
SELECT COUNT(*) FROM admissions, (SELECT AVG(floor) AS f FROM wards) m WHERE cost > m.f * 1000;
WITH k(s) AS (VALUES ('cardio'), ('neuro')) SELECT k.s, COUNT(*) FROM k LEFT JOIN admissions a ON a.ward = k.s GROUP BY k.s;
SELECT k.s, COUNT(*) FROM (SELECT 'cardio' AS s UNION ALL SELECT 'neuro') AS k LEFT JOIN admissions a ON a.ward = k.s GROUP BY k.s;
SELECT COUNT(*) FROM admissions WHERE ward = (SELECT ward FROM wards ORDER BY floor DESC, ward LIMIT 1);
SELECT COUNT(*) FROM admissions WHERE ward = ANY(SELECT ward FROM wards WHERE floor = 2);
SELECT COUNT(*) FROM admissions WHERE ward <> ALL(ARRAY['cardio', 'neuro']);
SELECT COUNT(*) FROM patients p LEFT JOIN admissions a ON p.patient_id = a.patient_id AND emergency;
WITH v(who, amount) AS (SELECT patient_id, cost FROM admissions) SELECT AVG(amount) FROM v;
-- refused
SELECT * FROM patients;
SELECT patient_id, SUM(cost) FROM admissions GROUP BY patient_id;
SELECT COUNT(*) FROM (SELECT *, RANK() OVER (ORDER BY cost) AS r FROM admissions) WHERE r < 10;
SELECT COUNT(*) FROM admissions a JOIN admissions b ON a.doctor = b.doctor;
SELECT COUNT(*) FROM admissions WHERE doctor IN (SELECT doctor FROM admissions WHERE cost > 15000);
SELECT STRING_AGG(doctor, ',') FROM admissions;
SELECT COUNT(*) FROM admissions s WHERE EXISTS (SELECT 1 FROM admissions b WHERE b.patient_id = s.patient_id AND b.admitted > s.admitted AND b.admitted < s.discharged + INTERVAL 30 DAY);
SELECT COUNT(*) FROM admissions s WHERE s.cost > (SELECT AVG(b.cost) FROM admissions b WHERE b.patient_id = s.patient_id AND b.admitted < s.admitted);
SELECT COUNT(*) FROM admissions s WHERE EXISTS (SELECT 1 FROM admissions b WHERE b.doctor = s.doctor AND b.cost > s.cost);
