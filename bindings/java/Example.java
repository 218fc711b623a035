import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;
import tollbar.Table;

/** A server with a limit: each address may come three times a minute. The port and the table's file are its arguments. */
public final class Example {
    public static void main(String[] arguments) throws IOException {
        int port = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 8080;
        String file = arguments.length > 1 ? arguments[1] : "/dev/shm/visits";
        Table visits = Table.open(file, "3/min", 100_000);
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.createContext("/", exchange -> answer(exchange, visits));
        server.start();
    }

    private static void answer(HttpExchange exchange, Table visits) throws IOException {
        byte[] client = Table.addressKey(exchange.getRemoteAddress().getAddress().getHostAddress());
        Table.Decision decision = visits.check(client);
        visits.fields("visits", client, decision).forEach(exchange.getResponseHeaders()::set);
        byte[] body = (decision.allowed ? "welcome\n" : "too many requests\n").getBytes(StandardCharsets.US_ASCII);
        exchange.sendResponseHeaders(decision.allowed ? 200 : 429, body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }
}
