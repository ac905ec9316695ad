// Reads a metadata directory of ours with Apache's own classes.
//
//   ReadBack DIR OUT   builds Apache's image once from the log in DIR and once from each snapshot in DIR, says whether the
//                      newest snapshot's image is the log's, and writes Apache's snapshot of it into OUT
import java.io.File;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.TreeMap;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.writer.ImageWriterOptions;
import org.apache.kafka.image.writer.RaftSnapshotWriter;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.raft.Batch;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.snapshot.FileRawSnapshotReader;
import org.apache.kafka.snapshot.FileRawSnapshotWriter;
import org.apache.kafka.snapshot.RecordsSnapshotReader;
import org.apache.kafka.snapshot.RecordsSnapshotWriter;
import org.apache.kafka.snapshot.Snapshots;

public class ReadBack {
    public static void main(String[] args) throws Exception {
        Path dir = Path.of(args[0]);
        Path out = Path.of(args[1]);
        MetadataImage ofLog = fromLog(dir.resolve("00000000000000000000.log"));
        TreeMap<OffsetAndEpoch, MetadataImage> ofSnapshots = new TreeMap<>();
        for (File file : dir.toFile().listFiles()) {
            var path = Snapshots.parse(file.toPath());
            if (path.isPresent()) ofSnapshots.put(path.get().snapshotId(), fromSnapshot(dir, path.get().snapshotId()));
        }
        MetadataImage newest = ofSnapshots.lastEntry().getValue();
        System.out.println("log: " + counts(ofLog));
        System.out.println("snapshot " + ofSnapshots.lastKey() + ": " + counts(newest));
        if (ofLog != null && !same(ofLog, newest)) {
            System.out.println("DIFFERENT");
            System.exit(1);
        }
        Files.createDirectories(out);
        write(out, ofSnapshots.lastKey(), newest);
        System.out.println("same");
    }

    private static String counts(MetadataImage image) {
        if (image == null) return "none";
        int partitions = image.topics().topicsById().values().stream().mapToInt(t -> t.partitions().size()).sum();
        return "metadata.version=" + image.features().metadataVersion().map(Object::toString).orElse("none")
            + " brokers=" + image.cluster().brokers().size() + " topics=" + image.topics().topicsById().size()
            + " partitions=" + partitions + " configs=" + image.configs().resourceData().size()
            + " acls=" + image.acls().acls().size();
    }

    private static boolean same(MetadataImage a, MetadataImage b) {
        return a.features().equals(b.features()) && a.cluster().equals(b.cluster()) && a.topics().equals(b.topics())
            && a.configs().equals(b.configs()) && a.clientQuotas().equals(b.clientQuotas())
            && a.producerIds().equals(b.producerIds()) && a.acls().equals(b.acls()) && a.scram().equals(b.scram())
            && a.delegationTokens().equals(b.delegationTokens());
    }

    private static MetadataDelta empty() {
        return new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
    }

    private static MetadataImage fromLog(Path path) throws Exception {
        if (!Files.exists(path)) return null;
        // An image per batch, as Apache's loader makes them: within one delta a deleted topic leaves an empty config behind.
        MetadataImage image = MetadataImage.EMPTY;
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(Files.readAllBytes(path)));
        long next = 0;
        int epoch = 0;
        for (RecordBatch batch : records.batches()) {
            batch.ensureValid();
            if (batch.baseOffset() != next) throw new RuntimeException("gap at " + next);
            if (batch.partitionLeaderEpoch() < epoch) throw new RuntimeException("epoch goes back at " + next);
            next = batch.nextOffset();
            epoch = batch.partitionLeaderEpoch();
            if (batch.isControlBatch()) continue;
            MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
            for (Record record : batch) {
                ByteBuffer value = record.value();
                ApiMessageAndVersion message =
                    MetadataRecordSerde.INSTANCE.read(new ByteBufferAccessor(value), value.remaining());
                // Apache's batch loader takes these two; the directories hold no transaction that was aborted.
                String type = message.message().getClass().getSimpleName();
                if (type.equals("BeginTransactionRecord") || type.equals("EndTransactionRecord")) continue;
                delta.replay(message.message());
            }
            image = delta.apply(new MetadataProvenance(next - 1, epoch, 0, true));
        }
        return image;
    }

    private static MetadataImage fromSnapshot(Path dir, OffsetAndEpoch id) {
        MetadataDelta delta = empty();
        try (RecordsSnapshotReader<ApiMessageAndVersion> reader = RecordsSnapshotReader.of(
                FileRawSnapshotReader.open(dir, id), MetadataRecordSerde.INSTANCE, BufferSupplier.create(),
                8 * 1024 * 1024, true, new LogContext())) {
            reader.lastContainedLogTimestamp();
            while (reader.hasNext()) {
                Batch<ApiMessageAndVersion> batch = reader.next();
                for (ApiMessageAndVersion message : batch.records()) delta.replay(message.message());
            }
        }
        return delta.apply(new MetadataProvenance(id.offset() - 1, id.epoch(), 0, true));
    }

    private static void write(Path out, OffsetAndEpoch id, MetadataImage image) {
        RecordsSnapshotWriter<ApiMessageAndVersion> snapshot = new RecordsSnapshotWriter.Builder()
            .setLastContainedLogTimestamp(42)
            .setKraftVersion(KRaftVersion.KRAFT_VERSION_0)
            .setMaxBatchSizeBytes(8 * 1024 * 1024)
            .setRawSnapshotWriter(FileRawSnapshotWriter.create(out, id))
            .build(MetadataRecordSerde.INSTANCE);
        RaftSnapshotWriter writer = new RaftSnapshotWriter(snapshot, 1000);
        image.write(writer, new ImageWriterOptions.Builder(image).build());
        writer.close(true);
    }
}
