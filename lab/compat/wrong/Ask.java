// Asks a broker anything that Kafka's own message classes can say: a line of JSON in, a line of JSON out.
//
// {"on": "a", "port": 9092, "api": "ConsumerGroupHeartbeat", "version": 1, "body": {...}} is sent on the connection `a`, which is made when it is first
// named. Fields that the body leaves out are Kafka's defaults, at the top level; below, all are to be there. What is answered is the response as
// Kafka's JSON has it, or {"closed": true} where the broker hangs up; whatever cannot be sent is {"unsent": why}. With "login": [user, password] a new
// connection logs in by SASL PLAIN first.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationTargetException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.message.ResponseHeaderData;
import org.apache.kafka.common.message.SaslAuthenticateRequestData;
import org.apache.kafka.common.message.SaslHandshakeRequestData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

public class Ask {
    static final String MESSAGES = "org.apache.kafka.common.message.";
    static final ObjectMapper JSON = new ObjectMapper();
    static final Map<String, Socket> connections = new HashMap<>();

    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null;) {
            JsonNode answer;
            try {
                answer = ask(JSON.readTree(line));
            } catch (InvocationTargetException e) {
                answer = said("unsent", e.getCause());
            } catch (ReflectiveOperationException | RuntimeException e) {
                answer = said("unsent", e);
            }
            System.out.println(JSON.writeValueAsString(answer));
            System.out.flush();
        }
    }

    static JsonNode said(String what, Throwable why) {
        return JSON.createObjectNode().put(what, String.valueOf(why));
    }

    static JsonNode ask(JsonNode asked) throws ReflectiveOperationException {
        String api = asked.get("api").asText();
        short version = (short) asked.get("version").asInt();
        ApiKeys key = null;
        for (ApiKeys known : ApiKeys.values()) if (known.name.equals(api)) key = known;
        if (key == null) throw new IllegalArgumentException("there is no API " + api);
        Message request = request(api, version, asked.get("body"));
        RequestHeaderData header = new RequestHeaderData().setRequestApiKey(key.id).setRequestApiVersion(version).setCorrelationId(1).setClientId("wrong");
        ByteBuffer frame = frame(header, key.requestHeaderVersion(version), request, version);
        String on = asked.get("on").asText();
        try {
            Socket socket = connections.get(on);
            if (socket == null) {
                connections.put(on, socket = new Socket(InetAddress.getLoopbackAddress(), asked.get("port").asInt()));
                socket.setTcpNoDelay(true);
                socket.setSoTimeout(30_000);
                if (asked.has("login")) logIn(socket, asked.get("login").get(0).asText(), asked.get("login").get(1).asText());
            }
            ByteBuffer answer = exchange(socket, frame);
            new ResponseHeaderData(new ByteBufferAccessor(answer), key.responseHeaderVersion(version));
            Message response = (Message) Class.forName(MESSAGES + api + "ResponseData").getConstructor().newInstance();
            response.read(new ByteBufferAccessor(answer), version);
            return written(api + "Response", response, version);
        } catch (IOException e) {
            connections.remove(on);
            return JSON.createObjectNode().put("closed", true);
        }
    }

    static void logIn(Socket socket, String user, String password) throws IOException {
        byte[] token = ("\0" + user + "\0" + password).getBytes(StandardCharsets.UTF_8);
        RequestHeaderData header = new RequestHeaderData().setRequestApiKey(ApiKeys.SASL_HANDSHAKE.id).setRequestApiVersion((short) 1).setCorrelationId(1).setClientId("wrong");
        exchange(socket, frame(header, (short) 1, new SaslHandshakeRequestData().setMechanism("PLAIN"), (short) 1));
        header.setRequestApiKey(ApiKeys.SASL_AUTHENTICATE.id).setRequestApiVersion((short) 0);
        ByteBuffer answer = exchange(socket, frame(header, (short) 1, new SaslAuthenticateRequestData().setAuthBytes(token), (short) 0));
        int code = answer.getShort(4);
        if (code != 0) throw new IllegalStateException("the login of " + user + " is refused with " + code);
    }

    static ByteBuffer exchange(Socket socket, ByteBuffer frame) throws IOException {
        socket.getOutputStream().write(frame.array());
        DataInputStream in = new DataInputStream(socket.getInputStream());
        return ByteBuffer.wrap(in.readNBytes(in.readInt()));
    }

    static ByteBuffer frame(RequestHeaderData header, short headerVersion, Message request, short version) {
        ByteBuffer head = bytes(header, headerVersion), body = bytes(request, version);
        ByteBuffer frame = ByteBuffer.allocate(4 + head.remaining() + body.remaining());
        frame.putInt(head.remaining() + body.remaining()).put(head).put(body).flip();
        return frame;
    }

    static Message request(String api, short version, JsonNode said) throws ReflectiveOperationException {
        Message standard = (Message) Class.forName(MESSAGES + api + "RequestData").getConstructor().newInstance();
        ObjectNode whole = (ObjectNode) written(api + "Request", standard, version);
        whole.setAll((ObjectNode) said);
        return (Message) Class.forName(MESSAGES + api + "RequestDataJsonConverter").getMethod("read", JsonNode.class, short.class).invoke(null, whole, version);
    }

    static JsonNode written(String name, Message message, short version) throws ReflectiveOperationException {
        return (JsonNode) Class.forName(MESSAGES + name + "DataJsonConverter").getMethod("write", message.getClass(), short.class).invoke(null, message, version);
    }

    static ByteBuffer bytes(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer out = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(out), cache, version);
        return out.flip();
    }
}
