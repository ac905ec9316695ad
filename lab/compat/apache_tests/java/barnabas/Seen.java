package barnabas;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import org.apache.kafka.common.message.MetadataResponseData.MetadataResponseTopic;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.requests.MetadataRequest;
import org.apache.kafka.common.requests.MetadataResponse;
import org.apache.kafka.common.requests.RequestHeader;

/** What one broker's Metadata answer says: the wire stands in for the broker's own metadata cache. */
final class Seen {
    private static final short VERSION = 12;
    private static final int TIMEOUT_MS = 5_000;

    private Seen() {
    }

    static MetadataResponse ask(int port) throws IOException {
        MetadataRequest request = MetadataRequest.Builder.allTopics().build(VERSION);
        RequestHeader header = new RequestHeader(ApiKeys.METADATA, VERSION, "apache-tests", 1);
        ByteBuffer bytes = request.serializeWithHeader(header);
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            socket.setSoTimeout(TIMEOUT_MS);
            DataOutputStream out = new DataOutputStream(socket.getOutputStream());
            out.writeInt(bytes.remaining());
            out.write(bytes.array(), bytes.arrayOffset() + bytes.position(), bytes.remaining());
            out.flush();
            DataInputStream in = new DataInputStream(socket.getInputStream());
            ByteBuffer answer = ByteBuffer.wrap(in.readNBytes(in.readInt()));
            answer.getInt();
            answer.get();
            return MetadataResponse.parse(new ByteBufferAccessor(answer), VERSION);
        }
    }

    static MetadataResponseTopic topic(MetadataResponse answer, String name) {
        return answer.data().topics().stream().filter(topic -> name.equals(topic.name()) && topic.errorCode() == 0).findFirst().orElse(null);
    }
}
