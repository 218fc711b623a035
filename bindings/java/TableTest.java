import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import tollbar.Table;

/** The tests. With the arguments {@code take FILE KEY TIMES} it takes single permits of a key, and prints how many it got. */
public final class TableTest {
    private static final List<String> POLICY = List.of("1000/day");

    private interface Test {
        void run() throws Exception;
    }

    public static void main(String[] arguments) {
        if (arguments.length == 4) {
            take(arguments[1], arguments[2], Integer.parseInt(arguments[3]));
            return;
        }
        Map<String, Test> tests = new LinkedHashMap<>();
        tests.put("three of five pass", TableTest::threeOfFivePass);
        tests.put("keys may have any characters", TableTest::keys);
        tests.put("a cost, and a cost above the burst", TableTest::costs);
        tests.put("a peek takes nothing", TableTest::peeks);
        tests.put("policies by number, and a ban", TableTest::policies);
        tests.put("charges and resets", TableTest::chargesAndResets);
        tests.put("header fields", TableTest::headerFields);
        tests.put("errors say what is wrong", TableTest::errors);
        tests.put("a file keeps the debts, and another capacity is refused", TableTest::files);
        tests.put("one address has one key", TableTest::addresses);
        tests.put("the most that a policy admits in a window", TableTest::worstCases);
        tests.put("short forms, durations and texts", TableTest::shortForms);
        tests.put("no value ends the process", TableTest::fuzz);
        tests.put("threads share the permits exactly", TableTest::threads);
        tests.put("a close beside calls", TableTest::closeBesideCalls);
        int failed = 0;
        for (Map.Entry<String, Test> test : tests.entrySet()) {
            try {
                test.getValue().run();
            } catch (Throwable problem) {
                failed++;
                System.out.println("FAIL " + test.getKey() + ": " + problem);
                problem.printStackTrace(System.out);
            }
        }
        System.out.println((tests.size() - failed) + " passed, " + failed + " failed");
        System.exit(failed == 0 ? 0 : 1);
    }

    private static void take(String file, String key, int times) {
        int got = 0;
        try (Table table = Table.open(file, POLICY, 1000)) {
            for (int i = 0; i < times; i++) {
                got += table.allow(key) ? 1 : 0;
            }
        }
        System.out.println(got);
    }

    private static void threeOfFivePass() {
        try (Table table = Table.inMemory(List.of("3/day"), 1000)) {
            List<Boolean> allowed = new ArrayList<>();
            List<Long> remaining = new ArrayList<>();
            Table.Decision last = null;
            for (int i = 0; i < 5; i++) {
                last = table.check("k", 1, 0);
                allowed.add(last.allowed);
                remaining.add(last.remaining);
            }
            same(allowed, List.of(true, true, true, false, false));
            same(remaining, List.of(2L, 1L, 0L, 0L, 0L));
            within(last.retryAfterNanos, 28_000_000_000_000L, 28_800_000_000_000L);
            within(last.resetAfterNanos, 86_000_000_000_000L, 86_400_000_000_000L);
            same(table.allow("other"), true);
        }
    }

    private static void keys() {
        try (Table table = Table.inMemory(List.of("1/day"), 1000)) {
            same(List.of(table.allow("a\0b"), table.allow("a\0c"), table.allow("é"), table.allow("a\0b")), List.of(true, true, true, false));
        }
    }

    private static void costs() {
        try (Table table = Table.inMemory(List.of("10/day"), 1000)) {
            same(List.of(table.allow("k", 7, 0), table.allow("k", 4, 0), table.allow("k", 3, 0), table.allow("k", 0, 0)),
                    List.of(true, false, true, true));
            same(table.check("k", 11, 0).retryAfterNanos, Long.MAX_VALUE);
        }
    }

    private static void peeks() {
        try (Table table = Table.inMemory(List.of("1/day"), 1000)) {
            same(List.of(table.peek("k", 1, 0).allowed, table.peek("k", 1, 0).allowed, table.allow("k"), table.peek("k", 1, 0).allowed),
                    List.of(true, true, true, false));
        }
    }

    private static void policies() {
        try (Table table = Table.inMemory(List.of("1/day", "2/day ban 2day"), 1000)) {
            same(List.of(table.allow("k"), table.allow("k")), List.of(true, false));
            same(table.charge("k", 2, 1), 0L);
            same(table.allow("k", 1, 1), false);
            within(table.peek("k", 1, 1).retryAfterNanos, 172_000_000_000_000L, 172_800_000_000_000L);
            same(failure(() -> table.allow("k", 1, 2)).code < 0, true);
        }
    }

    private static void chargesAndResets() {
        try (Table table = Table.inMemory(List.of("5/day"), 1000)) {
            same(table.charge("k", 3, 0), 0L);
            same(table.peek("k", 1, 0).remaining, 2L);
            same(table.reset("k", 0), true);
            same(table.peek("k", 1, 0).remaining, 5L);
            same(resets(table).contains(false), false);
        }
        // With `ban` each reset takes another slot of the key's twelve.
        try (Table table = Table.inMemory(List.of("5/day ban 1day"), 1000)) {
            List<Boolean> resets = resets(table);
            same(List.of(resets.get(0), resets.get(19)), List.of(true, false));
        }
    }

    private static List<Boolean> resets(Table table) {
        List<Boolean> resets = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            resets.add(table.allow("k") && table.reset("k", 0));
        }
        return resets;
    }

    private static void headerFields() {
        try (Table table = Table.inMemory(List.of("2/min"), 1000)) {
            Map<String, String> want = Map.of("RateLimit-Policy", "\"visits\";q=2;w=60", "RateLimit", "\"visits\";r=1;t=30");
            // Another key if a busy machine took a second, after which t is 29.
            for (int tries = 1;; tries++) {
                long began = System.nanoTime();
                String key = "k" + tries;
                Map<String, String> fields = table.fields("visits", key, table.check(key, 1, 0), 1, 0);
                if (fields.equals(want) || System.nanoTime() - began < 1_000_000_000L || tries == 20) {
                    same(fields, want);
                    break;
                }
            }
            same(List.of(table.allow("k"), table.allow("k")), List.of(true, true));
            same(List.copyOf(table.fields("visits", "k", table.check("k", 1, 0), 1, 0).keySet()),
                    List.of("Retry-After", "RateLimit-Policy", "RateLimit"));
        }
    }

    private static void errors() {
        same(failure(() -> Table.inMemory(List.of("5/mni"), 1000)).getMessage().startsWith("policy \"5/mni\", column 3: expected a period"), true);
        same(failure(() -> Table.inMemory(List.of(), 1000)).code, 0);
        same(failure(() -> Table.inMemory(List.of("5/min"), 0)).getMessage().contains("capacity"), true);
        same(failure(() -> Table.open("/nonexistent/table", List.of("5/min"), 1000)).getMessage().contains("open"), true);
        same(failure(() -> Table.inMemory(List.of("10/month zone Europe/Berlin"), 1000)).getMessage().contains("clock"), true);
        Table table = Table.inMemory(List.of("5/min"), 1000);
        same(failure(() -> table.allow("k", -1, 0)).getMessage(), "cost -1; expected 0 or more");
        table.close();
        table.close();
        try {
            table.allow("k");
        } catch (IllegalStateException closed) {
            return;
        }
        throw new AssertionError("a closed table allows");
    }

    private static void files() throws Exception {
        Path directory = Files.createTempDirectory("tollbar-");
        String file = directory.resolve("table").toString();
        try {
            try (Table table = Table.open(file, List.of("2/day"), 1000)) {
                table.allow("k");
            }
            try (Table table = Table.open(file, List.of("2/day"), 1000)) {
                same(table.peek("k", 1, 0).remaining, 1L);
            }
            same(failure(() -> Table.open(file, List.of("2/day"), 9999)).getMessage().contains("capacity"), true);
        } finally {
            Files.deleteIfExists(Path.of(file));
            Files.delete(directory);
        }
    }

    private static void addresses() {
        // B4: a host has all addresses of its /64, and a proxy may add a port.
        for (List<String> texts : List.of(
                List.of("192.0.2.1", "192.0.2.1:4711", "::ffff:192.0.2.1", " [::ffff:192.0.2.1]:80", "64:ff9b::192.0.2.1"),
                List.of("2001:db8::1", "2001:db8::ffff", "[2001:db8::2]:443", "2001:db8::3%eth0"))) {
            for (String text : texts) {
                same(Arrays.toString(Table.addressKey(text)), Arrays.toString(Table.addressKey(texts.get(0))));
            }
        }
        same(Arrays.toString(Table.addressKey("192.0.2.1")), "[4, 32, -64, 0, 2, 1]");
        same(Arrays.toString(Table.addressKey("2001:db8:1:2::", 32, 48)), "[6, 48, 32, 1, 13, -72, 0, 1]");
        for (String text : List.of("", "unix:", "localhost", "192.0.2.1:x")) {
            same(failure(() -> Table.addressKey(text)).getMessage(), "not a network address");
        }
        same(failure(() -> Table.addressKey("192.0.2.1", 33, 64)).code < 0, true);
        try (Table table = Table.inMemory(List.of("1/day"), 1000)) {
            byte[] key = Table.addressKey("2001:db8::1");
            same(List.of(table.allow(key), table.allow(Table.addressKey("2001:db8::2"))), List.of(true, false));
            same(table.check(key, 1, 0).allowed || table.peek(key, 1, 0).allowed, false);
            same(table.reset(key, 0), true);
            same(table.charge(key, 1, 0), 0L);
            same(table.fields("visits", key, table.check(key, 1, 0), 1, 0).containsKey("Retry-After"), true);
        }
    }

    /** M6: the cases of ffi-tests/c/policy_spec_test.c. */
    private static void worstCases() {
        long second = 1_000_000_000L;
        same(Table.worstCase("120/min", 60 * second), 239L);
        same(Table.worstCase("120/min", 3600 * second), 7319L);
        same(Table.worstCase("120/min", 1), 120L);
        same(Table.worstCase("120/min", 0), 0L);
        same(Table.worstCase("120/min algo sliding-window mode strict", 60 * second), 120L);
        same(Table.worstCase("10/day algo calendar", 25 * 3600 * second), 30L);
        same(Table.worstCase("0/s", second), 0L);
        same(Table.worstCase("10000000000/s", Long.MAX_VALUE), Long.MAX_VALUE);
        same(failure(() -> Table.worstCase("5/mni",
            second)).getMessage().startsWith("policy \"5/mni\", column 3: expected a period"), true);
        same(failure(() -> Table.worstCase("5/min", -1)).getMessage(), "window -1; expected nanoseconds, 0 or more");
    }

    private static void shortForms() {
        try (Table table = Table.inMemory("3/day", 1000)) {
            byte[] key = {1};
            same(table.toString(), "Table[in memory, 3/day, 1000 keys]");
            same(List.of(table.check("k").remaining, table.check(key).remaining, table.peek("k").remaining, table.peek(key).remaining),
                    List.of(2L, 2L, 2L, 2L));
            same(List.of(table.charge("k"), table.charge(key), table.peek("k").remaining, table.peek(key).remaining), List.of(0L, 0L, 1L, 1L));
            same(table.peek("k").retryAfter(), Optional.of(Duration.ZERO));
            Table.Decision last = table.check("k");
            same(table.fields("visits", "k", last).get("RateLimit-Policy"), "\"visits\";q=3;w=86400");
            same(last.toString().startsWith("Decision[allowed, remaining=0, retryAfter="), true);
            Table.Decision denied = table.check("k");
            same(denied.retryAfter(), Optional.of(Duration.ofNanos(denied.retryAfterNanos)));
            same(denied.resetAfter().get().toNanos(), denied.resetAfterNanos);
            same(denied.toString(), "Decision[denied: over the rate, remaining=0, retryAfter=" + denied.retryAfter().get()
                    + ", resetAfter=" + denied.resetAfter().get() + "]");
            Table.Decision never = table.check("k", 4, 0);
            same(never.retryAfter(), Optional.empty());
            same(never.toString().contains("denied: above the burst, remaining=0, retryAfter=never"), true);
            same(table.fields("visits", key, table.peek(key)).containsKey("Retry-After"), false);
            same(List.of(table.reset("k"), table.reset(key), table.peek("k").remaining), List.of(true, true, 3L));
        }
        same(Table.worstCase("120/min", Duration.ofMinutes(1)), 239L);
        same(Table.worstCase("0/s", Duration.ofSeconds(Long.MAX_VALUE)), 0L);
        same(failure(() -> Table.worstCase("5/min", Duration.ofSeconds(Long.MIN_VALUE))).getMessage(), "window -1; expected nanoseconds, 0 or more");
        same(failure(() -> Table.open("/nonexistent/table", "5/min", 1000)).name, "TOLLBAR_E_OPEN");
        same(failure(() -> Table.inMemory("5/mni", 1000)).name, "TOLLBAR_E_SYNTAX");
        same(failure(() -> Table.inMemory("5/min", 0)).name, "ARGUMENT");
    }

    /** D1: every call throws, or returns what it may. */
    private static void fuzz() throws Exception {
        Table open = Table.inMemory(List.of("1000000/day", "5/min ban 1h"), 1000);
        Table closed = Table.inMemory(List.of("1/day"), 1000);
        closed.close();
        Map<Class<?>, List<Object>> values = new HashMap<>();
        values.put(String.class, Arrays.asList(null, "", "k", "5/min", "\0", "x".repeat(5000), "192.0.2.1", "\ud800", "/nonexistent/table"));
        values.put(byte[].class, Arrays.asList(null, new byte[0], new byte[1], new byte[5000]));
        values.put(long.class, List.of(0L, 1L, 2L, -1L, 1L << 31, 1L << 32, Long.MAX_VALUE, Long.MIN_VALUE));
        values.put(int.class, List.of(0, 1, 2, -1, 33, 129, Integer.MAX_VALUE, Integer.MIN_VALUE));
        values.put(List.class, Arrays.asList(null, List.of(), List.of("5/min"), Arrays.asList((Object) null), List.of("no", "policy"), List.of(1)));
        values.put(Duration.class, Arrays.asList(null, Duration.ZERO, Duration.ofNanos(-1), Duration.ofDays(1), Duration.ofSeconds(Long.MAX_VALUE)));
        values.put(Table.Decision.class, Arrays.asList(null, open.check("k", 1, 0), open.check("k", 1, 1)));
        List<Method> methods = new ArrayList<>();
        for (Method method : Table.class.getDeclaredMethods()) {
            if (Modifier.isPublic(method.getModifiers()) && !method.getName().equals("close")) {
                methods.add(method);
            }
        }
        // The reflection's own order differs from run to run.
        methods.sort(Comparator.comparing(Method::toString));
        Random random = new Random(1);
        int threw = 0;
        for (int round = 0; round < 100_000; round++) {
            Method method = methods.get(random.nextInt(methods.size()));
            Object[] list = new Object[method.getParameterCount()];
            for (int i = 0; i < list.length; i++) {
                List<Object> of = values.get(method.getParameterTypes()[i]);
                list[i] = of.get(random.nextInt(of.size()));
            }
            boolean makes = method.getReturnType() == Table.class;
            if (makes && (long) list[list.length - 1] > 1000) {
                list[list.length - 1] = -1L;
            }
            if (method.getName().equals("open") && list[0] != null) {
                list[0] = "/nonexistent/table";
            }
            try {
                Object made = method.invoke(random.nextInt(10) == 0 ? closed : open, list);
                if (makes) {
                    ((Table) made).close();
                }
            } catch (InvocationTargetException problem) {
                threw++;
            }
        }
        same(threw > 10_000 && threw < 99_000, true);
        same(open.allow("other"), true);
        open.close();
    }

    private static void threads() throws Exception {
        try (Table table = Table.inMemory(POLICY, 1000)) {
            AtomicInteger got = new AtomicInteger();
            run(4, () -> {
                for (int i = 0; i < 500; i++) {
                    got.addAndGet(table.allow("k") ? 1 : 0);
                }
            });
            same(got.get(), 1000);
        }
    }

    private static void closeBesideCalls() throws Exception {
        for (int round = 0; round < 50; round++) {
            Table table = Table.inMemory(POLICY, 1000);
            AtomicInteger closed = new AtomicInteger();
            Thread closer = new Thread(table::close);
            closer.start();
            run(3, () -> {
                try {
                    while (true) {
                        table.check("k", 1, 0);
                    }
                } catch (IllegalStateException expected) {
                    closed.incrementAndGet();
                }
            });
            closer.join();
            same(closed.get(), 3);
        }
    }

    private static void run(int count, Runnable work) throws InterruptedException {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            threads.add(new Thread(work));
            threads.get(i).start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    private static Table.Failure failure(Runnable call) {
        try {
            call.run();
        } catch (Table.Failure failure) {
            return failure;
        }
        throw new AssertionError("no failure");
    }

    private static void same(Object got, Object want) {
        if (!Objects.equals(got, want)) {
            throw new AssertionError(got + "; expected " + want);
        }
    }

    private static void within(long got, long above, long most) {
        if (got <= above || got > most) {
            throw new AssertionError(got + "; expected above " + above + ", at most " + most);
        }
    }
}
