import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import org.apache.qpid.jms.JmsConnectionFactory;

/** Qpid JMS puts durable messages, each acknowledged before the next: {@code PORT QUEUE SIZE PER_SECOND THREADS}. */
public final class JmsPut {
  public static void main(String[] words) throws Exception {
    JmsConnectionFactory factory = new JmsConnectionFactory("admin", "admin", "amqp://127.0.0.1:" + words[0]);
    Pace pace = new Pace(Integer.parseInt(words[3]), Integer.parseInt(words[4]), Integer.parseInt(words[2]));
    pace.run(() -> open(factory, words[1]), 1);
  }

  private static Pace.Sender open(JmsConnectionFactory factory, String name) throws Exception {
    Connection connection = factory.createConnection();
    connection.start();
    Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    MessageProducer producer = session.createProducer(session.createQueue(name));
    producer.setDeliveryMode(DeliveryMode.PERSISTENT);
    return (payload, commits) -> {
      BytesMessage message = session.createBytesMessage();
      message.writeBytes(payload);
      producer.send(message);
    };
  }
}
