import java.util.Arrays;
import java.util.List;
import tollbar.Table;

/** The same program as visit.c, in Java. */
public final class Visit {
    public static void main(String[] arguments) {
        try (Table table = Table.open(arguments[0], List.of("1/day"), 10_000)) {
            for (String address : Arrays.asList(arguments).subList(1, arguments.length)) {
                System.out.println(verdict(table, address));
            }
        }
    }

    private static String verdict(Table table, String address) {
        byte[] key;
        try {
            key = Table.addressKey(address);
        } catch (Table.Failure failure) {
            return "no address";
        }
        return table.allow(key) ? "passes" : "refused";
    }
}
