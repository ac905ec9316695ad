// Fills a broker and tells what it holds, through Apache's Java client alone. One process lives through a whole chain of brokers,
// and some of its producers with it: what they may go on with after a change of broker is part of the question.
//
// Commands on standard input, one line each; one line answers: `ok …` or `err …`.
//   fill STAGE PEER TRIM  appends of every kind; PEER is kafka-3, kafka-4 or barnabas (no transactions yet); TRIM is trim, which deletes
//                         records, or keep
//   freeze SECONDS        no more compaction: what is seen next stays as it is
//   snapshot FILE PEER    everything visible, a line `key TAB value` each
//   feature NAME LEVEL    raises a feature's level
//   finish                ends the transaction that was left open (a producer of the same id takes over)

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;

public class Dirs {
    static String bootstrap;
    static Admin admin;

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        p.put("reconnect.backoff.max.ms", "200");
        p.put("default.api.timeout.ms", "60000");
        admin = Admin.create(p);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null;) {
            try {
                System.out.println("ok " + run(line.split(" ")));
            } catch (Throwable e) {
                e.printStackTrace();
                Throwable cause = e instanceof ExecutionException ? e.getCause() : e;
                System.out.println("err " + String.valueOf(cause).replace('\n', ' '));
            }
            System.out.flush();
        }
        // Not closed: closing a producer would abort what is meant to stay open.
        Runtime.getRuntime().halt(0);
    }

    static String run(String[] words) throws Exception {
        switch (words[0]) {
            case "fill": return Fill.fill(Integer.parseInt(words[1]), words[2], words[3].equals("trim"));
            case "freeze": return Fill.freeze(Integer.parseInt(words[1]));
            case "snapshot": return Snapshot.write(words[1], words[2]);
            case "finish": return Fill.finish();
            case "feature":
                admin.updateFeatures(Map.of(words[1], new FeatureUpdate(Short.parseShort(words[2]), FeatureUpdate.UpgradeType.UPGRADE)),
                    new UpdateFeaturesOptions()).all().get();
                return words[1] + " " + words[2];
            default: throw new IllegalArgumentException(words[0]);
        }
    }
}
