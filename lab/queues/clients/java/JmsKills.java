import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import org.apache.qpid.jms.JmsConnectionFactory;

/**
 * Puts and gets of AMQP while the node is killed: {@code PORT USER PASSWORD QUEUE}. Lines say how each ended, as its program knows it:
 *
 * <p>{@code put sure|doubt ID}: the message was accepted; the connection was lost first. {@code got LIFE AT_MS ID}: it was settled as accepted at that time, in that life of a
 * connection; AMQP does not confirm this. {@code broke LIFE AT_MS}: that life is over.
 *
 * <p>{@code STOP} on standard input ends the senders, {@code END} the rest.
 */
public final class JmsKills {
  private static final int SENDERS = 3;
  private static final int GETTERS = 3;

  private static JmsConnectionFactory factory;
  private static String queue;
  private static volatile boolean sends = true;
  private static volatile boolean runs = true;

  public static void main(String[] words) throws Exception {
    factory = new JmsConnectionFactory(words[1], words[2], "amqp://127.0.0.1:" + words[0] + "?jms.prefetchPolicy.all=5&amqp.idleTimeout=60000&jms.connectTimeout=5000&jms.requestTimeout=20000&jms.sendTimeout=20000");
    queue = words[3];
    List<Thread> senders = new ArrayList<>();
    List<Thread> getters = new ArrayList<>();
    for (int at = 0; at < SENDERS; at++) {
      int number = at;
      senders.add(begin(() -> send(number)));
    }
    for (int at = 0; at < GETTERS; at++) {
      int number = at;
      getters.add(begin(() -> take(number)));
    }
    BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
    orders.readLine();
    sends = false;
    for (Thread one : senders) {
      one.join();
    }
    System.out.println("STOPPED");
    orders.readLine();
    runs = false;
    for (Thread one : getters) {
      one.join(20_000);
    }
    System.out.println("ENDED");
    System.out.flush();
    Runtime.getRuntime().halt(0);
  }

  private static Thread begin(Runnable work) {
    Thread thread = new Thread(work);
    thread.start();
    return thread;
  }

  private static void pause(int ms) {
    try {
      Thread.sleep(ms);
    } catch (InterruptedException never) {
      throw new IllegalStateException(never);
    }
  }

  private static void send(int number) {
    long next = 0;
    while (sends) {
      try (Connection connection = factory.createConnection()) {
        connection.start();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(session.createQueue(queue));
        producer.setDeliveryMode(DeliveryMode.PERSISTENT);
        while (sends) {
          String id = number + "-" + next++;
          TextMessage message = session.createTextMessage(id);
          try {
            producer.send(message);
            System.out.println("put sure " + id);
          } catch (JMSException error) {
            System.out.println("put doubt " + id);
            throw error;
          }
          pause(10);
        }
        return;
      } catch (JMSException error) {
        pause(100);
      }
    }
  }

  private static void take(int number) {
    int life = 0;
    while (runs) {
      String name = number + "." + life++;
      try (Connection connection = factory.createConnection()) {
        connection.start();
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(session.createQueue(queue));
        while (runs) {
          Message message = consumer.receive(500);
          if (message != null) {
            message.acknowledge();
            System.out.println("got " + name + " " + System.currentTimeMillis() + " " + ((TextMessage) message).getText());
          } else if (((org.apache.qpid.jms.JmsConnection) connection).isFailed()) {
            throw new JMSException("the connection is lost");
          }
        }
      } catch (JMSException error) {
        System.out.println("broke " + name + " " + System.currentTimeMillis());
        pause(100);
      }
    }
  }
}
