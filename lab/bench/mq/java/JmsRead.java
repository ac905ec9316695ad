import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import org.apache.qpid.jms.JmsConnectionFactory;

/** Qpid JMS takes the messages of a queue: {@code PORT QUEUE}. */
public final class JmsRead {
  public static void main(String[] words) throws Exception {
    Tally tally = new Tally();
    Connection connection = new JmsConnectionFactory("admin", "admin", "amqp://127.0.0.1:" + words[0]).createConnection();
    connection.start();
    Session session = connection.createSession(false, Session.DUPS_OK_ACKNOWLEDGE);
    MessageConsumer consumer = session.createConsumer(session.createQueue(words[1]));
    tally.ready();
    while (true) {
      Message message = consumer.receive();
      tally.read(message instanceof TextMessage ? ((TextMessage) message).getText().getBytes() : ((BytesMessage) message).getBody(byte[].class));
    }
  }
}
