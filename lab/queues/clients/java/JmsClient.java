import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.JMSSecurityException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Session;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.Enumeration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.qpid.jms.JmsConnectionFactory;

/** Qpid JMS. See PROTOCOL.md. */
public final class JmsClient {
  /** A mode of Qpid JMS's own: each message is acknowledged alone. */
  private static final int INDIVIDUAL_ACKNOWLEDGE = 101;

  private static final String ACK_TYPE = "JMS_AMQP_ACK_TYPE";
  private static final Map<String, Integer> ACK_TYPES = Map.of("accept", 1, "reject", 2, "release", 3, "modify", 4);

  public static void main(String[] words) throws Exception {
    String verb = words[0];
    String options = words.length > 7 && verb.equals("put") ? words[7] : words.length > 8 ? words[8] : "{}";
    String credit = number(options, "credit") == null ? "" : "&jms.prefetchPolicy.all=" + number(options, "credit").intValue();
    String idle = verb.equals("idle") ? "?amqp.idleTimeout=2000" : "?amqp.idleTimeout=60000";
    JmsConnectionFactory factory =
        new JmsConnectionFactory(words[3], words[4], "amqp://" + words[1] + ":" + words[2] + idle + credit);
    String answer;
    try (Connection connection = factory.createConnection()) {
      connection.start();
      answer =
          switch (verb) {
            case "connect" -> "{\"connected\": true}";
            case "put" -> put(connection, words[5], words[6], options);
            case "get" -> get(connection, words[5], Integer.parseInt(words[6]), words[7], options);
            case "idle" -> idle(connection, words[5], Double.parseDouble(words[6]));
            case "request" -> request(connection, words[5]);
            default -> transact(connection, words[5], words[6]);
          };
    } catch (JMSSecurityException error) {
      // A link that needs a right throws the same as a wrong password.
      answer = verb.equals("connect") ? "{\"connected\": false}" : "{\"refused\": [" + quoted(condition(error)) + "]}";
    } catch (JMSException error) {
      answer = "{\"refused\": [" + quoted(condition(error)) + "]}";
    }
    System.out.println(answer);
    System.exit(0);
  }

  private static String put(Connection connection, String queue, String texts, String options) throws JMSException {
    Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    MessageProducer producer = session.createProducer(session.createQueue(queue));
    producer.setDeliveryMode(DeliveryMode.PERSISTENT);
    Double ttl = number(options, "ttl");
    if (ttl != null) {
      producer.setTimeToLive(ttl.longValue());
    }
    Double size = number(options, "size");
    int accepted = 0;
    List<String> refused = new ArrayList<>();
    for (String text : strings(texts)) {
      String padded = size == null ? text : text + "x".repeat(Math.max(0, size.intValue() - text.length()));
      Message message = session.createTextMessage(padded);
      fill(message, options);
      try {
        producer.send(message);
        accepted++;
      } catch (JMSException error) {
        refused.add(quoted(condition(error)));
      }
    }
    return "{\"accepted\": " + accepted + ", \"refused\": [" + String.join(", ", refused) + "]}";
  }

  private static void fill(Message message, String options) throws JMSException {
    if (text(options, "subject") != null) {
      message.setJMSType(text(options, "subject"));
    }
    if (text(options, "group") != null) {
      message.setStringProperty("JMSXGroupID", text(options, "group"));
    }
    Matcher whole = Pattern.compile("\"properties\": \\{([^}]*)\\}").matcher(options);
    if (!whole.find()) {
      return;
    }
    Matcher each = Pattern.compile("\"(\\w+)\": (\"([^\"]*)\"|true|false|-?\\d+)").matcher(whole.group(1));
    while (each.find()) {
      String value = each.group(2);
      if (each.group(3) != null) {
        message.setStringProperty(each.group(1), each.group(3));
      } else if (value.equals("true") || value.equals("false")) {
        message.setBooleanProperty(each.group(1), value.equals("true"));
      } else {
        message.setIntProperty(each.group(1), Integer.parseInt(value));
      }
    }
  }

  private static String get(Connection connection, String queue, int number, String outcome, String options) throws Exception {
    Double wait = number(options, "wait");
    Double pause = number(options, "pause");
    Double hold = number(options, "hold");
    List<String> got = new ArrayList<>();
    Session session = connection.createSession(false, INDIVIDUAL_ACKNOWLEDGE);
    if (outcome.equals("browse")) {
      QueueBrowser browser = session.createBrowser(session.createQueue(queue), text(options, "selector"));
      for (Enumeration<?> found = browser.getEnumeration(); found.hasMoreElements() && got.size() < number; ) {
        got.add(described((Message) found.nextElement()));
      }
      return "{\"got\": [" + String.join(", ", got) + "]}";
    }
    MessageConsumer consumer = session.createConsumer(session.createQueue(queue));
    while (got.size() < number) {
      Message message = consumer.receive((long) ((wait == null ? 3 : wait) * 1000));
      if (message == null) {
        break;
      }
      got.add(described(message));
      if (pause != null) {
        Thread.sleep((long) (pause * 1000));
      }
      if (ACK_TYPES.containsKey(outcome)) {
        message.setIntProperty(ACK_TYPE, ACK_TYPES.get(outcome));
        message.acknowledge();
      }
    }
    if (hold != null) {
      System.out.println("holding");
      Thread.sleep((long) (hold * 1000));
    }
    return "{\"got\": [" + String.join(", ", got) + "]}";
  }

  private static String idle(Connection connection, String queue, double seconds) throws Exception {
    Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    MessageProducer producer = session.createProducer(session.createQueue(queue));
    producer.send(session.createTextMessage("before"));
    Thread.sleep((long) (seconds * 1000));
    producer.send(session.createTextMessage("after"));
    return "{\"accepted\": 2, \"refused\": []}";
  }

  private static String request(Connection connection, String queue) throws JMSException {
    Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    TemporaryQueue replies = session.createTemporaryQueue();
    MessageConsumer reply = session.createConsumer(replies);
    MessageConsumer served = session.createConsumer(session.createQueue(queue));
    Message asked = session.createTextMessage("ping");
    asked.setJMSReplyTo(replies);
    session.createProducer(session.createQueue(queue)).send(asked);
    TextMessage taken = (TextMessage) served.receive(5000);
    if (taken == null) {
      return "{\"reply\": null}";
    }
    session.createProducer(taken.getJMSReplyTo()).send(session.createTextMessage(taken.getText() + "-pong"));
    TextMessage answer = (TextMessage) reply.receive(5000);
    return "{\"reply\": " + (answer == null ? "null" : quoted(answer.getText())) + "}";
  }

  private static String transact(Connection connection, String name, String steps) throws Exception {
    Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
    MessageProducer producer = session.createProducer(session.createQueue(name));
    MessageConsumer consumer = steps.contains("\"get\"") ? session.createConsumer(session.createQueue(name)) : null;
    List<String> got = new ArrayList<>();
    List<String> refused = new ArrayList<>();
    Matcher each = Pattern.compile("\\[\"(\\w+)\"(?:, \"?([^\"\\]]*)\"?)?\\]").matcher(steps);
    try {
      while (each.find()) {
        switch (each.group(1)) {
          case "put" -> producer.send(session.createTextMessage(each.group(2)));
          case "get" -> {
            for (int left = Integer.parseInt(each.group(2)); left > 0; left--) {
              TextMessage message = (TextMessage) consumer.receive(5000);
              if (message == null) {
                throw new JMSException("amqp:nothing-came");
              }
              got.add(quoted(message.getText()));
            }
          }
          case "commit" -> session.commit();
          case "rollback" -> session.rollback();
          default -> {
            System.out.println("holding");
            Thread.sleep((long) (Double.parseDouble(each.group(2)) * 1000));
          }
        }
      }
    } catch (JMSException error) {
      refused.add(quoted(condition(error)));
    }
    return "{\"got\": [" + String.join(", ", got) + "], \"refused\": [" + String.join(", ", refused) + "]}";
  }

  private static String described(Message message) throws JMSException {
    String text = message instanceof TextMessage whole ? whole.getText() : new String(bytes((BytesMessage) message));
    Map<String, String> properties = new TreeMap<>();
    for (Enumeration<?> names = message.getPropertyNames(); names.hasMoreElements(); ) {
      String name = (String) names.nextElement();
      if (!name.startsWith("JMS")) {
        Object value = message.getObjectProperty(name);
        properties.put(quoted(name), value instanceof String words ? quoted(words) : String.valueOf(value));
      }
    }
    List<String> pairs = new ArrayList<>();
    properties.forEach((name, value) -> pairs.add(name + ": " + value));
    String found = "\"length\": " + text.length() + ", \"count\": " + (message.getIntProperty("JMSXDeliveryCount") - 1)
        + ", \"properties\": " + (pairs.isEmpty() ? "null" : "{" + String.join(", ", pairs) + "}")
        + ", \"subject\": " + (message.getJMSType() == null ? "null" : quoted(message.getJMSType()));
    return "{" + found + (text.length() <= 100 ? ", \"text\": " + quoted(text) : "") + "}";
  }

  private static byte[] bytes(BytesMessage message) throws JMSException {
    byte[] all = new byte[(int) message.getBodyLength()];
    message.readBytes(all);
    return all;
  }

  /** The AMQP condition in an exception's words. */
  private static String condition(JMSException error) {
    Matcher found = Pattern.compile("amqp:[a-z:-]+").matcher(String.valueOf(error.getMessage()));
    return found.find() ? found.group() : error.getClass().getSimpleName();
  }

  private static String quoted(String text) {
    return "\"" + text.replace("\\", "\\\\").replace("\"", "\\\"") + "\"";
  }

  private static Double number(String options, String name) {
    Matcher found = Pattern.compile("\"" + name + "\": (-?[0-9.]+)").matcher(options);
    return found.find() ? Double.valueOf(found.group(1)) : null;
  }

  private static String text(String options, String name) {
    Matcher found = Pattern.compile("\"" + name + "\": \"([^\"]*)\"").matcher(options);
    return found.find() ? found.group(1) : null;
  }

  private static List<String> strings(String list) {
    List<String> found = new ArrayList<>();
    Matcher each = Pattern.compile("\"([^\"]*)\"").matcher(list);
    while (each.find()) {
      found.add(each.group(1));
    }
    return found;
  }
}
