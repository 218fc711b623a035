import com.google.common.util.concurrent.RateLimiter;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CyclicBarrier;

/** Guava's RateLimiter, for ../src/process.rs: each line of standard input is a question, each line of output its answer. */
public final class Peers {
    /** Does the requests from one number to another. Returns the number allowed, so that the compiler can leave no call out. */
    interface Runner {
        int run(int from, int to);
    }

    private static long[] order = {};
    private static Limiters yes;
    private static Limiters no;
    private static final Map<String, Runner> ONES = new HashMap<>();
    /** A result that no compiler can leave out. */
    private static volatile int sink;

    public static void main(String[] arguments) throws Exception {
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in));
        for (String question = questions.readLine(); question != null; question = questions.readLine()) {
            System.out.println(answer(question.split(" ")));
            System.out.flush();
        }
    }

    private static String answer(String[] words) throws Exception {
        switch (words[0]) {
            case "versions":
                String jar = Path.of(RateLimiter.class.getProtectionDomain().getCodeSource().getLocation().toURI()).getFileName().toString();
                return "Java " + System.getProperty("java.version") + ", " + jar.replace(".jar", "");
            case "one":
                Runner one = ONES.computeIfAbsent(words[2], Peers::one);
                return "" + turn(one, number(words[3]), 0, 0, number(words[4]));
            case "order":
                order = keys(words[1]);
                return "ok";
            case "fill":
                return "" + fill(words[2].equals("allowed"), keys(words[3]));
            case "keyed":
                return "" + turn(keyed(words[2]), number(words[3]), number(words[4]), number(words[5]), number(words[6]));
            case "forget":
                yes = null;
                no = null;
                order = new long[0];
                return "ok";
            default:
                return "no such question: " + words[0];
        }
    }

    private static int number(String text) {
        return Integer.parseInt(text);
    }

    /** A rate so high that nothing is refused, or a permit a day that has been taken. */
    private static RateLimiter limiter(boolean allows) {
        RateLimiter limiter = RateLimiter.create(allows ? 1e9 : 1.0 / 86_400);
        limiter.tryAcquire();
        return limiter;
    }

    private static Runner one(String work) {
        RateLimiter open = limiter(true);
        RateLimiter shut = limiter(false);
        if (!open.tryAcquire() || shut.tryAcquire()) {
            throw new IllegalStateException("what Guava says is not what is measured");
        }
        boolean[] coin = new boolean[1 << 14];
        Random random = new Random(1);
        for (int i = 0; i < coin.length; i++) {
            coin[i] = work.equals("allowed") || work.equals("mixed") && random.nextBoolean();
        }
        return (from, to) -> {
            int passed = 0;
            for (int i = from; i < to; i++) {
                if ((coin[i & (coin.length - 1)] ? open : shut).tryAcquire()) {
                    passed++;
                }
            }
            return passed;
        };
    }

    /** One limiter for each key in a concurrent map: Guava leaves the map to its users. */
    private static final class Limiters {
        final ConcurrentHashMap<Long, RateLimiter> keys = new ConcurrentHashMap<>();
        final boolean allows;

        Limiters(boolean allows) {
            this.allows = allows;
        }

        boolean allow(long key) {
            RateLimiter found = keys.get(key);
            if (found == null) {
                found = keys.computeIfAbsent(key, fresh -> limiter(allows));
            }
            return found.tryAcquire();
        }
    }

    private static double fill(boolean allows, long[] keys) throws InterruptedException {
        long before = heap();
        Limiters filled = new Limiters(allows);
        for (long key : keys) {
            filled.allow(key);
        }
        double grown = heap() - before;
        if (allows) {
            yes = filled;
        } else {
            no = filled;
        }
        return grown / keys.length;
    }

    private static Runner keyed(String work) {
        long[] round = order;
        boolean denied = work.equals("denied");
        boolean mixed = work.equals("mixed");
        return (from, to) -> {
            int passed = 0;
            for (int i = from; i < to; i++) {
                long key = round[i & (round.length - 1)];
                if ((denied || mixed && (key & 1) == 1 ? no : yes).allow(key)) {
                    passed++;
                }
            }
            return passed;
        };
    }

    /** Nanoseconds per request of one thread. All threads do `count` requests at once, after `warm` that do not count. */
    private static double turn(Runner runner, int threads, int at, int warm, int count) throws InterruptedException {
        CyclicBarrier ready = new CyclicBarrier(threads);
        long[] took = new long[threads];
        Thread[] running = new Thread[threads];
        for (int thread = 0; thread < threads; thread++) {
            int own = thread;
            int from = at + (int) ((long) thread * order.length / threads);
            running[thread] = new Thread(() -> {
                sink += runner.run(from, from + warm);
                try {
                    ready.await();
                } catch (InterruptedException | BrokenBarrierException impossible) {
                    throw new IllegalStateException(impossible);
                }
                long start = System.nanoTime();
                sink += runner.run(from + warm, from + warm + count);
                took[own] = System.nanoTime() - start;
            });
            running[thread].start();
        }
        double sum = 0;
        for (int thread = 0; thread < threads; thread++) {
            running[thread].join();
            sum += took[thread];
        }
        return sum / threads / count;
    }

    private static long[] keys(String path) throws IOException {
        try (FileChannel file = FileChannel.open(Path.of(path))) {
            long[] keys = new long[(int) (file.size() / 8)];
            file.map(FileChannel.MapMode.READ_ONLY, 0, file.size()).order(ByteOrder.nativeOrder()).asLongBuffer().get(keys);
            return keys;
        }
    }

    /** Bytes of the heap that are in use. */
    private static long heap() throws InterruptedException {
        for (int i = 0; i < 3; i++) {
            System.gc();
            Thread.sleep(10);
        }
        return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
    }
}
