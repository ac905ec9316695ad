import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;
import org.apache.qpid.jms.JmsConnectionFactory;

/**
 * A test connector: a queue → a topic, with Qpid JMS in a transacted session. A poll takes up to {@code batch} messages; their session is committed at the
 * next poll, once Connect has written their records (at least once). Keys: {@code url}, {@code queue}, {@code topic}, {@code batch}.
 */
public final class JmsSource extends SourceConnector {
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

  public static final class OneTask extends SourceTask {
    private String topic;
    private int most;
    private Connection connection;
    private Session session;
    private MessageConsumer consumer;
    private int polled;
    private int written;

    @Override
    public void start(Map<String, String> settings) {
      topic = settings.get("topic");
      most = Integer.parseInt(settings.get("batch"));
      try {
        connection = new JmsConnectionFactory("admin", "admin", settings.get("url")).createConnection();
        connection.start();
        session = connection.createSession(true, Session.SESSION_TRANSACTED);
        consumer = session.createConsumer(session.createQueue(settings.get("queue")));
      } catch (Exception error) {
        throw new ConnectException(error);
      }
    }

    @Override
    public List<SourceRecord> poll() throws InterruptedException {
      try {
        awaitWritten();
        List<SourceRecord> records = new ArrayList<>();
        Message message = consumer.receive(500);
        while (message != null) {
          byte[] body = ((BytesMessage) message).getBody(byte[].class);
          records.add(new SourceRecord(Map.of(), Map.of(), topic, Schema.OPTIONAL_BYTES_SCHEMA, body));
          message = records.size() < most ? consumer.receiveNoWait() : null;
        }
        synchronized (this) {
          polled = records.size();
          written = 0;
        }
        return records.isEmpty() ? null : records;
      } catch (jakarta.jms.JMSException error) {
        throw new ConnectException(error);
      }
    }

    private void awaitWritten() throws InterruptedException, jakarta.jms.JMSException {
      synchronized (this) {
        while (written < polled) {
          wait(1000);
        }
      }
      if (polled > 0) {
        session.commit();
      }
    }

    @Override
    public synchronized void commitRecord(SourceRecord record, org.apache.kafka.clients.producer.RecordMetadata metadata) {
      written++;
      notifyAll();
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
