import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.sink.SinkConnector;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;
import org.apache.qpid.jms.JmsConnectionFactory;

/** A test connector: a topic → a queue, with Qpid JMS; one transaction of the session for each put of Connect. Keys: {@code url}, {@code queue}. */
public final class JmsSink extends SinkConnector {
  private Map<String, String> settings;

  @Override
  public void start(Map<String, String> given) {
    settings = given;
  }

  @Override
  public Class<? extends Task> taskClass() {
    return OneTask.class;
  }

  @Override
  public List<Map<String, String>> taskConfigs(int most) {
    return List.of(settings);
  }

  @Override
  public void stop() {}

  @Override
  public ConfigDef config() {
    return new ConfigDef();
  }

  @Override
  public String version() {
    return "1";
  }

  public static final class OneTask extends SinkTask {
    private Connection connection;
    private Session session;
    private MessageProducer producer;

    @Override
    public void start(Map<String, String> settings) {
      try {
        connection = new JmsConnectionFactory("admin", "admin", settings.get("url")).createConnection();
        connection.start();
        session = connection.createSession(true, Session.SESSION_TRANSACTED);
        producer = session.createProducer(session.createQueue(settings.get("queue")));
        producer.setDeliveryMode(DeliveryMode.PERSISTENT);
      } catch (Exception error) {
        throw new ConnectException(error);
      }
    }

    @Override
    public void put(Collection<SinkRecord> records) {
      if (records.isEmpty()) {
        return;
      }
      try {
        for (SinkRecord record : records) {
          BytesMessage message = session.createBytesMessage();
          message.writeBytes((byte[]) record.value());
          producer.send(message);
        }
        session.commit();
      } catch (Exception error) {
        throw new ConnectException(error);
      }
    }

    @Override
    public void stop() {
      try {
        connection.close();
      } catch (Exception error) {
        throw new ConnectException(error);
      }
    }

    @Override
    public String version() {
      return "1";
    }
  }
}
