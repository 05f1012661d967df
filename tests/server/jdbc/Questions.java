import java.sql.*;
import java.util.*;

/** What a program with PostgreSQL's driver for Java does; the arguments are a URL, a user, a key. */
public class Questions {
    public static void main(String[] given) throws Exception {
        Properties who = new Properties();
        who.setProperty("user", given[1]);
        who.setProperty("password", given[2]);
        who.setProperty("options", "-c discreet.epsilon=1");
        try (Connection line = DriverManager.getConnection(given[0], who)) {
            describe(line);
            ask(line);
            fetch(line);
            refuse(line);
        }
    }

    static void describe(Connection line) throws SQLException {
        DatabaseMetaData about = line.getMetaData();
        System.out.println("product " + about.getDatabaseProductName());
        try (ResultSet found = about.getSchemas()) {
            while (found.next()) System.out.println("schema " + found.getString(1));
        }
        try (ResultSet found = about.getTables(null, "public", "%", new String[] {"TABLE"})) {
            while (found.next()) System.out.println("table " + found.getString("TABLE_NAME"));
        }
        try (ResultSet found = about.getColumns(null, "public", "visits", "%")) {
            while (found.next())
                System.out.println(
                    "column " + found.getString("COLUMN_NAME") + " " + found.getString("TYPE_NAME"));
        }
        about.getPrimaryKeys(null, "public", "visits").close();
        about.getImportedKeys(null, "public", "visits").close();
        about.getIndexInfo(null, "public", "visits", false, false).close();
        about.getTypeInfo().close();
        about.getSQLKeywords();
    }

    /** Often enough that the driver prepares the statement and wants binary results. */
    static void ask(Connection line) throws SQLException {
        String text = "SELECT city, COUNT(*) AS n, AVG(age) AS mean FROM visits"
            + " WHERE age < ? AND city <> ? GROUP BY city";
        try (PreparedStatement asked = line.prepareStatement(text)) {
            for (int time = 0; time < 8; time++) {
                asked.setInt(1, 60);
                asked.setString(2, "Cork");
                try (ResultSet found = asked.executeQuery()) {
                    while (found.next())
                        System.out.println("asked " + found.getString(1) + " " + found.getLong(2)
                            + " " + found.getDouble(3));
                }
                SQLWarning told = asked.getWarnings();
                if (told != null) System.out.println("notice " + told.getMessage());
                asked.clearWarnings();
            }
        }
    }

    static void fetch(Connection line) throws SQLException {
        line.setAutoCommit(false);
        try (Statement asked = line.createStatement()) {
            asked.setFetchSize(1);
            ResultSet found = asked.executeQuery("SELECT city, COUNT(*) AS n FROM visits GROUP BY city");
            while (found.next()) System.out.println("fetched " + found.getString("city"));
        }
        line.commit();
        line.setAutoCommit(true);
    }

    static void refuse(Connection line) throws SQLException {
        try (Statement asked = line.createStatement()) {
            asked.executeQuery("SELECT AVG(income) FROM visits");
        } catch (SQLException refused) {
            System.out.println("refused " + refused.getSQLState());
        }
    }
}
