import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import org.apache.qpid.jms.JmsConnectionFactory;

/**
 * The two ends of the bridge story, with Qpid JMS.
 *
 * <p>{@code put URI QUEUE COUNT PER_SECOND}: puts the texts 0, 1, 2 …, durable, each acknowledged before the next. After a failure it
 * connects again and puts the same text with the same duplicate id, so that each is in the queue once. {@code drain URI QUEUE IDLE_MS}:
 * takes messages until none has come for so long, and prints one line for each: its text, the id of the source, its duplicate id.
 */
public final class Queue {
  public static void main(String[] words) throws Exception {
    JmsConnectionFactory factory = new JmsConnectionFactory("admin", "admin", words[1]);
    if (words[0].equals("put")) {
      put(factory, words[2], Integer.parseInt(words[3]), Integer.parseInt(words[4]));
    } else {
      drain(factory, words[2], Long.parseLong(words[3]));
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

  private static void drain(JmsConnectionFactory factory, String queue, long idleMs) throws Exception {
    StringBuilder lines = new StringBuilder();
    try (Connection connection = factory.createConnection()) {
      connection.start();
      Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
      MessageConsumer consumer = session.createConsumer(session.createQueue(queue));
      for (Message message = consumer.receive(idleMs); message != null; message = consumer.receive(idleMs)) {
        String text = message instanceof TextMessage
            ? ((TextMessage) message).getText()
            : new String(((BytesMessage) message).getBody(byte[].class));
        lines.append(text).append('\t').append(message.getObjectProperty("number")).append('\t')
            .append(message.getStringProperty("_AMQ_DUPL_ID")).append('\n');
      }
    }
    System.out.print(lines);
  }
}
