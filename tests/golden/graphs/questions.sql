-- # Rows of two people: pairs, both people, degrees

-- A pair is one unit, whichever way round.
SELECT COUNT(*) AS n FROM friends;
--> accepted
--> rows: 1 lost, 0 gained
--> moves by: 1 (squared 1)

SELECT kind, COUNT(*) AS n FROM friends GROUP BY kind;
--> accepted
--> rows: 1 lost, 0 gained
--> moves by: 1 (squared 1)

-- A group for each person tells of each person what only pairs are protected from.
SELECT src, COUNT(*) AS n FROM friends GROUP BY src;
--> refused Q52: GROUP BY src makes groups of single people in a table of two.
--> why: each row of the answer would be about somebody and all who share rows with them.
--> fix: group by a column that is not an owner, or by what a table of people says of one: JOIN people AS p ON p.person = m.sender ... GROUP BY p.age_group.

SELECT at_least, COUNT(*) AS people FROM DEGREES(friends, 50) AS d GROUP BY at_least;
--> accepted
--> rows: 2 lost, 0 gained
--> moves by: 2 (squared 4)

SELECT COUNT(*) AS n FROM WEDGES(friends, 50) AS w;
--> accepted
--> rows: 98 lost, 0 gained
--> moves by: 98 (squared 9604)

SELECT COUNT(*) AS n FROM TRIANGLES(friends, 50) AS t;
--> accepted
--> rows: 98 lost, 98 gained
--> moves by: 98 (squared 9604)

SELECT COUNT(*) AS n FROM TRIANGLES(friends) AS t;
--> refused Q52: TRIANGLES is not called like this.
--> why: which pairs are looked at, and how many of each person, must be certain.
--> fix: write FROM TRIANGLES(friends, 50): a table of pairs, and how many connections of each person are looked at.

SELECT COUNT(*) AS n FROM TRIANGLES(friends, 1) AS t;
--> refused Q52: TRIANGLES looks at 1 connections of each person.
--> why: what is beyond is not looked at, and noise grows with it.
--> fix: write TRIANGLES(friends, 50), with 2 to 10,000.

-- What one person takes along and lets in: 200 rows each.
SELECT COUNT(*) AS n FROM messages;
--> accepted
--> rows: 200 lost, 200 gained
--> moves by: 200 (squared 40000)

SELECT SUM(length) AS s FROM messages;
--> accepted
--> rows: 200 lost, 200 gained
--> moves by: 12000 (squared 144000000)

SELECT kind, COUNT(*) AS n FROM messages GROUP BY kind;
--> accepted
--> rows: 200 lost, 200 gained
--> moves by: 400 (squared 80000)

SELECT AVG(length) AS mean FROM messages WHERE kind = 'call';
--> accepted
--> rows: 200 lost, 200 gained
--> moves by: 24000 (squared 288000000)

SELECT COUNT(DISTINCT sender) AS senders FROM messages;
--> accepted
--> rows: 200 lost, 200 gained
--> moves by: 200 (squared 40000)

SELECT r.region, COUNT(*) AS n FROM messages AS m JOIN places AS r ON r.name = m.place GROUP BY r.region;
--> accepted
--> rows: 200 lost, 200 gained
--> moves by: 400 (squared 80000)

-- Who writes to whom, by age.
SELECT a.age_group, b.age_group AS other, COUNT(*) AS n FROM messages AS m JOIN people AS a ON a.person = m.sender JOIN people AS b ON b.person = m.receiver GROUP BY a.age_group, b.age_group;
--> accepted
--> rows: 200 lost, 200 gained
--> moves by: 400 (squared 80000)

-- The other way round is the same question.
SELECT p.age_group, COUNT(*) AS n FROM people AS p JOIN messages AS m ON p.person = m.sender GROUP BY p.age_group;
--> refused Q18: 'm' and what it is joined to have no unit in common that is in sight.
--> why: a row made of two people's rows belongs to both, and no bound holds for either.
--> ask: SELECT p.age_group, COUNT(*) AS n FROM messages AS m JOIN people AS p ON p.person = m.sender GROUP BY p.age_group

SELECT at_least, COUNT(*) AS people FROM DEGREES(messages, 50) AS d GROUP BY at_least;
--> accepted
--> rows: 400 lost, 400 gained
--> moves by: 648 (squared 199650)

SELECT COUNT(*) AS n FROM TRIANGLES(messages, 50) AS t;
--> refused Q52: TRIANGLES reads a table of pairs, and the rows of 'messages' are of two people, each of whom is protected.
--> why: one person is in as many of them as there are two rows of theirs, and lets in others: the noise would be larger than what is counted.
--> fix: count degrees instead, FROM DEGREES(messages, 50) by at_least; or have the curator declare a table of pairs.

SELECT COUNT(*) AS n FROM DEGREES(people, 50) AS d;
--> refused Q52: DEGREES reads a table of pairs, and 'people' is none.
--> why: how far one pair moves a degree is known where each pair is there once.
--> fix: have the curator declare unit = { pair = ["src", "dst"] } and max_rows_per_unit = 1.

SELECT sender, COUNT(*) AS n FROM messages GROUP BY sender;
--> refused Q52: GROUP BY sender makes groups of single people in a table of two.
--> why: each row of the answer would be about somebody and all who share rows with them.
--> fix: group by a column that is not an owner, or by what a table of people says of one: JOIN people AS p ON p.person = m.sender ... GROUP BY p.age_group.

SELECT place, COUNT(*) AS n FROM messages GROUP BY place;
--> refused Q52: groups that are not listed publicly are asked of rows with two owners.
--> why: whether a group is shown would hang on how many people are in it, and a row of two people is in it for both.
--> fix: declare the column's values in the schema, or list them: WHERE x IN ('a', 'b').

SELECT COUNT(DISTINCT person) AS n FROM messages;
--> refused Q7: there is no column 'person'.
--> why: only what the curator declared can be read.
--> ask: SELECT COUNT(*) AS n FROM messages

SELECT AVG(n) AS m FROM (SELECT sender, COUNT(*) AS n FROM messages GROUP BY sender) AS t;
--> refused Q22: a sub-query with aggregates must GROUP BY the unit.
--> why: it would put several people into one row, and that row would belong to nobody.
--> fix: ask for these aggregates in the outermost SELECT, or GROUP BY the unit.

-- Dropping one person's rows lets in another's; it is done once, where the table is read.
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_rows = 2) COUNT(*) AS n FROM messages;
--> refused Q52: the question bounds the rows of a person again, in a table whose rows have two owners.
--> why: dropping one person's rows lets in another's; it is done once, where the table is read.
--> fix: leave out max_rows, max_groups_contributed and max_rows_per_group.

SELECT SUM(length, contribution_bounds_per_group => (0, 9)) AS s FROM messages;
--> refused Q52: totals of each person are bounded in a table whose rows have two owners.
--> why: a row of two people would be in the totals of both.
--> fix: leave out contribution_bounds_per_group.

SELECT COUNT(*) AS n FROM messages AS a JOIN messages AS b ON a.sender = b.receiver;
--> refused Q52: 'b' is joined to rows of two people on something else than one of them.
--> why: a row made of the rows of three people would belong to all of them.
--> fix: join a table of the same entity, with one row for each person, on one owner: JOIN people AS p ON p.person = m.sender.

SELECT COUNT(*) AS n FROM messages AS m JOIN people AS p ON p.person = m.length;
--> refused Q52: 'p' is joined to rows of two people on something else than one of them.
--> why: a row made of the rows of three people would belong to all of them.
--> fix: join a table of the same entity, with one row for each person, on one owner: JOIN people AS p ON p.person = m.sender.

SELECT COUNT(*) AS n FROM messages AS m FULL JOIN people AS p ON p.person = m.sender;
--> refused Q52: a table whose rows have two owners is joined to something else than one row of one of them.
--> why: a row made of the rows of three people would belong to all of them.
--> fix: join a table of the same entity with max_rows_per_unit = 1 (or a sub-query with one row for each person) on one owner: JOIN people AS p ON p.person = m.sender.

SELECT COUNT(*) AS n FROM (SELECT at_least AS x FROM DEGREES(friends, 5) AS d UNION ALL SELECT src AS x FROM friends) AS u;
--> refused Q52: what a graph consists of is put together with other rows, or by its owners.
--> why: a degree is there because of several pairs, and none of them owns it.
--> fix: count them: SELECT at_least, COUNT(*) FROM DEGREES(friends, 50) GROUP BY at_least.
