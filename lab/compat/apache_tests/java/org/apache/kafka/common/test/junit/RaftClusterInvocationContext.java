package org.apache.kafka.common.test.junit;

import barnabas.Cluster;
import java.util.List;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.Extension;
import org.junit.jupiter.api.extension.TestTemplateInvocationContext;

/**
 * One run of a test on one cluster of Barnabas.
 *
 * Apache's ClusterTestExtensions constructs the class of this name: it reads the annotations, and this class stands earlier on the class
 * path than Apache's own. What Apache's extension checks around a test (leaked threads) stays as it is.
 */
public class RaftClusterInvocationContext implements TestTemplateInvocationContext {
    private final String name;
    private final ClusterConfig config;
    private final boolean combined;

    public RaftClusterInvocationContext(String name, ClusterConfig config, boolean combined) {
        this.name = name;
        this.config = config;
        this.combined = combined;
    }

    @Override
    public String getDisplayName(int index) {
        return String.format("%s [%d] Type=Raft-%s, %s", name, index, combined ? "Combined" : "Isolated", String.join(",", config.displayTags()));
    }

    @Override
    public List<Extension> getAdditionalExtensions() {
        Cluster cluster = new Cluster(config, combined);
        BeforeEachCallback before = context -> {
            cluster.format();
            if (config.isAutoStart()) {
                cluster.start();
            }
        };
        AfterEachCallback after = context -> cluster.finish();
        return List.of(before, after, new ClusterInstanceParameterResolver(cluster));
    }
}
