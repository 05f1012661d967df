-- postgres
SELECT branch, COUNT(*) AS loans FROM loans GROUP BY branch ORDER BY loans DESC;
SELECT COUNT(DISTINCT reader_id) AS active FROM loans WHERE borrowed >= '2025-06-01';
SELECT genre, ROUND(AVG(fine), 2) AS mean_fine FROM loans GROUP BY 1;
SELECT DATE_TRUNC('month', borrowed) AS month, COUNT(*) AS n FROM loans GROUP BY 1 ORDER BY 1;
SELECT TO_CHAR(borrowed, 'YYYY-MM') AS ym, COUNT(*) AS n FROM loans GROUP BY ym ORDER BY ym;
--> duckdb: SELECT strftime(borrowed, '%Y-%m') AS ym, COUNT(*) AS n FROM loans GROUP BY ym ORDER BY ym
SELECT EXTRACT(DOW FROM borrowed) AS dow, COUNT(*) AS n FROM loans GROUP BY dow ORDER BY dow;
SELECT COUNT(*) FILTER (WHERE returned > due) * 100.0 / COUNT(*) AS late_pct FROM loans;
SELECT SUM(CASE WHEN returned IS NULL THEN 1 ELSE 0 END) AS out FROM loans;
SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY fine) AS med FROM loans WHERE fine > 0;
SELECT r.postcode, COUNT(*) AS n FROM loans l JOIN readers r USING (reader_id) GROUP BY r.postcode;
SELECT r.student, AVG(l.fine) AS f FROM loans AS l INNER JOIN readers AS r ON l.reader_id = r.reader_id GROUP BY r.student;
SELECT COUNT(*) AS n FROM readers r WHERE NOT EXISTS (SELECT 1 FROM loans l WHERE l.reader_id = r.reader_id AND l.genre = 'crime');
SELECT COUNT(*) AS n FROM readers WHERE reader_id IN (SELECT reader_id FROM loans WHERE genre = 'poetry');
SELECT COUNT(*) AS n FROM readers r LEFT JOIN loans l ON l.reader_id = r.reader_id AND l.genre = 'poetry' WHERE l.loan_id IS NULL;
SELECT b.district, COUNT(*) AS n FROM loans l JOIN branches b ON l.branch = b.branch GROUP BY b.district;
SELECT b.branch, COUNT(l.loan_id) AS n FROM branches b LEFT JOIN loans l ON l.branch = b.branch GROUP BY b.branch;
SELECT k.genre, COUNT(l.loan_id) AS n FROM (VALUES ('crime'), ('poetry'), ('travel')) AS k(genre) LEFT JOIN loans l ON l.genre = k.genre WHERE LENGTH(k.genre) > 5 GROUP BY k.genre;
SELECT k.genre, COUNT(l.loan_id) AS n FROM (VALUES ('crime', 1), ('poetry', 2)) AS k(genre, shelf) LEFT JOIN loans l ON l.genre = k.genre AND k.shelf > 1 GROUP BY k.genre;
SELECT AVG(c) AS per_reader FROM (SELECT reader_id, COUNT(*) AS c FROM loans GROUP BY reader_id) t;
WITH t AS (SELECT reader_id, COUNT(*) AS c FROM loans GROUP BY reader_id) SELECT c, COUNT(*) AS readers FROM t GROUP BY c ORDER BY c;
SELECT COUNT(*) AS n FROM (SELECT reader_id, borrowed, LAG(borrowed) OVER (PARTITION BY reader_id ORDER BY borrowed) AS prev FROM loans) t WHERE borrowed < prev + INTERVAL '7 days';
SELECT CORR(renewals, fine) AS c, REGR_SLOPE(fine, renewals) AS s FROM loans;
SELECT COALESCE(CAST(EXTRACT(YEAR FROM returned) AS TEXT), 'out') AS y, COUNT(*) AS n FROM loans GROUP BY 1;
SELECT COUNT(*) AS n FROM loans WHERE genre ILIKE 'c%' AND branch NOT IN ('mill');
SELECT r.postcode, l.genre, COUNT(*) AS n FROM loans l, readers r WHERE l.reader_id = r.reader_id GROUP BY 1, 2 ORDER BY 1, 2;
SELECT COUNT(*) AS n FROM readers WHERE joined >= DATE '2025-12-31' - INTERVAL '5' YEAR;
SELECT AVG(returned - CAST(borrowed AS DATE)) AS days FROM loans;
SELECT COUNT(*) AS n FROM loans WHERE (branch, genre) IN (('mill', 'crime'), ('central', 'poetry'));
SELECT COUNT(*) AS n FROM loans WHERE (branch, genre) NOT IN (('mill', 'crime'), ('central', 'poetry')) AND (renewals, genre) = (1, 'travel');
SELECT genre, COUNT(*) AS n FROM loans WHERE isbn ~ '^1[01]' GROUP BY genre;
SELECT LEFT(postcode, 1) AS area, COUNT(*) AS n FROM readers GROUP BY LEFT(postcode, 1);
SELECT AVG(fine) FILTER (WHERE renewals = 0) AS a, AVG(fine) FILTER (WHERE renewals > 0) AS b FROM loans;
SELECT SUM(fine) / COUNT(DISTINCT reader_id) AS per_reader FROM loans;
SELECT COUNT(*) AS n FROM (SELECT reader_id FROM loans GROUP BY reader_id HAVING COUNT(DISTINCT branch) = 3) t;
-- duckdb
SELECT MEDIAN(2025 - birth_year) AS age FROM readers WHERE student;
SELECT CASE WHEN 2025 - birth_year < 18 THEN 'child' WHEN 2025 - birth_year < 65 THEN 'adult' ELSE 'senior' END AS grp, COUNT(*) AS n FROM readers GROUP BY grp;
WITH firsts AS (SELECT reader_id, MIN(borrowed) AS f FROM loans GROUP BY reader_id) SELECT MONTH(f) AS m, COUNT(*) AS n FROM firsts GROUP BY m ORDER BY m;
SELECT AVG(DATE_DIFF('day', CAST(borrowed AS DATE), returned)) AS days FROM loans;
SELECT STDDEV(fine) AS sd, VARIANCE(renewals) AS v FROM loans;
SELECT isbn, COUNT(*) AS n FROM loans GROUP BY isbn;
SELECT COUNT(*) AS n FROM readers SEMI JOIN loans USING (reader_id);
SELECT COUNT(*) AS n FROM readers r ANTI JOIN loans l ON l.reader_id = r.reader_id AND l.genre = 'crime' WHERE r.student OR r.postcode = 'N1';
SELECT branch, AVG(fine) AS f, f * 100 AS cents FROM loans GROUP BY branch;
SELECT MONTH(borrowed) AS m, COUNT(*) AS n FROM loans WHERE m > 6 GROUP BY m;
SELECT r.postcode, COUNT(l.loan_id) AS n FROM readers r LEFT JOIN loans l ON l.reader_id = r.reader_id AND r.student AND l.fine > 5 GROUP BY r.postcode;
WITH t AS (SELECT reader_id, BOOL_OR(genre = 'poetry') AS poet, COUNT(*) FILTER (WHERE fine > 0) AS fined FROM loans GROUP BY reader_id) SELECT COUNT(*) FILTER (WHERE poet) AS poets, AVG(fined) AS fined FROM t;
SELECT COUNT() AS n FROM loans WHERE renewals > 2;
--> duckdb: SELECT COUNT(*) AS n FROM loans WHERE renewals > 2
-- bigquery
SELECT FORMAT_DATE('%Y-%m', due) AS ym, COUNT(*) AS n FROM loans GROUP BY ym ORDER BY ym;
SELECT COUNTIF(returned > due) / COUNT(*) AS late FROM loans;
SELECT FLOOR((2025 - birth_year) / 10) * 10 AS decade, COUNT(*) AS n FROM readers GROUP BY decade ORDER BY decade;
-- snowflake
SELECT COUNT_IF(returned IS NULL) AS out FROM loans;
SELECT APPROX_PERCENTILE(fine, 0.9) AS p90 FROM loans;
--> duckdb: SELECT QUANTILE_CONT(fine, 0.9) AS p90 FROM loans
SELECT DIV0(SUM(fine), COUNT(*)) AS p FROM loans;
SELECT DECODE(branch, 'central', 'C', 'mill', 'M', 'other') AS b, COUNT(*) AS n FROM loans GROUP BY 1;
SELECT NVL(genre, 'none') AS g, COUNT(*) AS n FROM loans GROUP BY 1;
SELECT AVG(DATEDIFF(day, borrowed, returned)) AS days FROM loans;
SELECT TOP 2 genre, COUNT(*) AS n FROM loans GROUP BY genre ORDER BY n DESC;
SELECT IFF(renewals > 0, 'renewed', 'not') AS k, COUNT(*) AS n FROM loans GROUP BY k;
SELECT COUNT(*) AS n FROM loans l WHERE l.borrowed BETWEEN TIMESTAMP '2025-03-01' AND TIMESTAMP '2025-03-31 23:59:59';
-- refused
SELECT reader_id, COUNT(*) AS n FROM loans GROUP BY reader_id ORDER BY n DESC LIMIT 10;
SELECT * FROM loans WHERE fine > 10;
SELECT genre, COUNT(*) AS n FROM loans WHERE genre = 'crime' AND genre = 'travel' GROUP BY genre;
SELECT COUNT(*) AS n FROM loans WHERE due > '2027-01-01';
SELECT COUNT(*) AS n FROM loans l WHERE l.fine > (SELECT AVG(b.fine) FROM loans b WHERE b.genre = l.genre);
