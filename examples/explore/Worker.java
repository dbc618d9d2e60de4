import java.net.URI;
import java.util.List;

/** The worker of the page, with the class that docs/testing-java.md shows in place of a library. */
public final class Worker {
    public static void main(String[] args) throws Exception {
        URI url = URI.create(System.getenv("REDIS_URL"));
        try (PenstockControl client = new PenstockControl(url.getHost(), url.getPort())) {
            for (String start : List.of("0", ">")) {
                for (List<?> entry = next(client, start); entry != null; entry = next(client, start)) {
                    client.ask("INCRBY", "total", price((List<?>) entry.get(1)));
                    client.ask("XACK", "orders", "kitchen", entry.get(0));
                }
            }
        }
    }

    private static List<?> next(PenstockControl client, String start) throws Exception {
        Object reply = client.ask(
            "XREADGROUP", "GROUP", "kitchen", "alice", "COUNT", 1, "STREAMS", "orders", start);
        if (reply == null) return null;
        List<?> stream = (List<?>) ((List<?>) reply).get(0);
        List<?> entries = (List<?>) stream.get(1);
        return entries.isEmpty() ? null : (List<?>) entries.get(0);
    }

    private static Object price(List<?> fields) {
        return fields.get(fields.indexOf("price") + 1);
    }
}
