import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageProducer;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.Enumeration;
import org.apache.qpid.jms.JmsConnectionFactory;

/**
 * The two ends of the bridge story, with Qpid JMS.
 *
 * <p>{@code put URI QUEUE COUNT PER_SECOND}: puts the texts 0, 1, 2 …, durable, each acknowledged before the next. After a failure it
 * connects again and puts the same text with the same duplicate id, so that each is in the queue once. {@code sizes URI QUEUE LENGTH…}: puts
 * texts of these lengths. {@code browse URI QUEUE}: prints one line for each message, without taking it: its text, the id of the source,
 * its duplicate id; then {@code end} and their number. It changes nothing, so it can be run again.
 */
public final class Queue {
  public static void main(String[] words) throws Exception {
    JmsConnectionFactory factory = new JmsConnectionFactory("admin", "admin", words[1]);
    if (words[0].equals("put")) {
      put(factory, words[2], Integer.parseInt(words[3]), Integer.parseInt(words[4]));
    } else if (words[0].equals("sizes")) {
      sizes(factory, words);
    } else {
      browse(factory, words[2]);
    }
  }

  private static void put(JmsConnectionFactory factory, String queue, int count, int perSecond) throws Exception {
    long started = System.nanoTime();
    int next = 0;
    while (next < count) {
      try (Connection connection = factory.createConnection()) {
        connection.start();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(session.createQueue(queue));
        producer.setDeliveryMode(DeliveryMode.PERSISTENT);
        while (next < count) {
          TextMessage message = session.createTextMessage(Integer.toString(next));
          message.setStringProperty("_AMQ_DUPL_ID", "story-" + next);
          message.setIntProperty("number", next);
          producer.send(message);
          next++;
          long due = started + next * 1_000_000_000L / perSecond - System.nanoTime();
          if (due > 0) {
            Thread.sleep(due / 1_000_000);
          }
        }
      } catch (JMSException error) {
        Thread.sleep(100);
      }
    }
    System.out.println("put " + count);
  }

  private static void sizes(JmsConnectionFactory factory, String[] words) throws Exception {
    try (Connection connection = factory.createConnection()) {
      connection.start();
      Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
      MessageProducer producer = session.createProducer(session.createQueue(words[2]));
      for (int at = 3; at < words.length; at++) {
        producer.send(session.createTextMessage("x".repeat(Integer.parseInt(words[at]))));
      }
    }
    System.out.println("put " + (words.length - 3));
  }

  private static void browse(JmsConnectionFactory factory, String queue) throws Exception {
    int count = 0;
    try (Connection connection = factory.createConnection()) {
      connection.start();
      Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
      QueueBrowser browser = session.createBrowser(session.createQueue(queue));
      for (Enumeration<?> found = browser.getEnumeration(); found.hasMoreElements(); ) {
        Message message = (Message) found.nextElement();
        String text = message instanceof TextMessage
            ? ((TextMessage) message).getText()
            : new String(((BytesMessage) message).getBody(byte[].class));
        System.out.println(text + '\t' + message.getObjectProperty("number") + '\t' + message.getStringProperty("_AMQ_DUPL_ID"));
        count++;
      }
    }
    System.out.println("end " + count);
  }
}
