import com.ibm.mq.MQException;
import com.ibm.msg.client.jms.JmsConnectionFactory;
import com.ibm.msg.client.jms.JmsFactoryFactory;
import com.ibm.msg.client.wmq.WMQConstants;
import java.util.Enumeration;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import javax.jms.BytesMessage;
import javax.jms.JMSConsumer;
import javax.jms.JMSContext;
import javax.jms.Message;
import javax.jms.Queue;
import javax.jms.QueueBrowser;
import javax.jms.TemporaryQueue;
import javax.jms.TextMessage;

/** IBM MQ classes for JMS. `SCENARIO PORT USER PASSWORD QUEUE [WORD]`: one line says what the scenario came to. */
public final class MqJmsClient {
  private static JmsConnectionFactory factory;
  private static String name;
  private static String word;

  public static void main(String[] words) {
    String came;
    try {
      factory = JmsFactoryFactory.getInstance(WMQConstants.WMQ_PROVIDER).createConnectionFactory();
      factory.setStringProperty(WMQConstants.WMQ_HOST_NAME, "127.0.0.1");
      factory.setIntProperty(WMQConstants.WMQ_PORT, Integer.parseInt(words[1]));
      factory.setStringProperty(WMQConstants.WMQ_CHANNEL, "BARNABAS.SVRCONN");
      factory.setIntProperty(WMQConstants.WMQ_CONNECTION_MODE, WMQConstants.WMQ_CM_CLIENT);
      factory.setStringProperty(WMQConstants.WMQ_QUEUE_MANAGER, words[0].equals("wrong_queue_manager") ? "QM2" : "QM1");
      factory.setBooleanProperty(WMQConstants.USER_AUTHENTICATION_MQCSP, true);
      factory.setStringProperty(WMQConstants.USERID, words[2]);
      factory.setStringProperty(WMQConstants.PASSWORD, words[3]);
      name = words[4];
      word = words.length > 5 ? words[5] : "";
      came = play(words[0]);
    } catch (Exception error) {
      came = reason(error);
    }
    System.out.println("CAME " + came);
    System.exit(0);
  }

  private static String reason(Throwable error) {
    for (Throwable cause = error; cause != null; cause = cause.getCause()) {
      if (cause instanceof MQException) {
        return "reason " + ((MQException) cause).reasonCode;
      }
    }
    return "failed: " + error;
  }

  private static JMSContext context(int mode) {
    return factory.createContext(mode);
  }

  private static Queue queue(JMSContext context) {
    return context.createQueue("queue:///" + name);
  }

  private static String play(String scenario) throws Exception {
    try (JMSContext context = context(JMSContext.AUTO_ACKNOWLEDGE)) {
      return switch (scenario) {
        case "connect", "wrong_queue_manager" -> "connected to QM1";
        case "put_get" -> putGet(context);
        case "put" -> put(context);
        case "get" -> got(context.createConsumer(queue(context)), 5000);
        case "no_message" -> got(context.createConsumer(queue(context)), 300);
        case "no_wait" -> noWait(context);
        case "properties" -> properties(context);
        case "bytes" -> bytes(context);
        case "commit" -> commit();
        case "backout" -> backout();
        case "listener" -> listener(context);
        case "large_message" -> largeMessage(context);
        case "browse" -> browse(context);
        case "expiry" -> expiry(context);
        case "request_reply" -> requestReply(context);
        case "selector" -> got(context.createConsumer(queue(context), "n = 5"), 300);
        default -> throw new IllegalArgumentException(scenario);
      };
    }
  }

  private static void send(JMSContext context, String... texts) {
    for (String text : texts) {
      context.createProducer().send(queue(context), text);
    }
  }

  private static String got(JMSConsumer consumer, long ms) throws Exception {
    Message message = consumer.receive(ms);
    return message == null ? "nothing" : ((TextMessage) message).getText();
  }

  private static String putGet(JMSContext context) throws Exception {
    send(context, "a", "b", "c");
    JMSConsumer consumer = context.createConsumer(queue(context));
    return got(consumer, 5000) + " " + got(consumer, 5000) + " " + got(consumer, 5000);
  }

  private static String put(JMSContext context) {
    context.createProducer().setProperty("n", 5).setProperty("JMSXGroupID", "g").send(queue(context), word);
    return "put";
  }

  private static String noWait(JMSContext context) throws Exception {
    send(context, "a", "b");
    JMSConsumer consumer = context.createConsumer(queue(context));
    StringBuilder all = new StringBuilder();
    for (int i = 0; i < 3; i++) {
      Message message = consumer.receiveNoWait();
      all.append(message == null ? "nothing" : ((TextMessage) message).getText()).append(' ');
    }
    return all.toString().trim();
  }

  private static String properties(JMSContext context) throws Exception {
    TextMessage sent = context.createTextMessage("a");
    sent.setIntProperty("n", -3);
    sent.setStringProperty("s", "007");
    sent.setBooleanProperty("flag", true);
    sent.setJMSType("type");
    sent.setJMSCorrelationID("correlation");
    context.createProducer().send(queue(context), sent);
    Message message = context.createConsumer(queue(context)).receive(5000);
    return message.getBody(String.class) + " n=" + message.getObjectProperty("n") + " s=" + message.getObjectProperty("s") + " flag="
        + message.getObjectProperty("flag") + " " + message.getJMSType() + " " + message.getJMSCorrelationID() + " "
        + sent.getJMSMessageID().equals(message.getJMSMessageID());
  }

  private static String bytes(JMSContext context) throws Exception {
    BytesMessage sent = context.createBytesMessage();
    sent.writeBytes(new byte[] {0, -1, 7});
    context.createProducer().send(queue(context), sent);
    BytesMessage message = (BytesMessage) context.createConsumer(queue(context)).receive(5000);
    return message.getBodyLength() + " bytes, the second " + (message.readByte() + message.readByte());
  }

  private static String commit() throws Exception {
    try (JMSContext sender = context(JMSContext.SESSION_TRANSACTED);
        JMSContext receiver = context(JMSContext.SESSION_TRANSACTED)) {
      send(sender, "a", "b", "c");
      JMSConsumer consumer = receiver.createConsumer(queue(receiver));
      String before = got(consumer, 500);
      sender.commit();
      String all = got(consumer, 5000) + " " + got(consumer, 5000) + " " + got(consumer, 5000);
      receiver.commit();
      return before + ", then " + all;
    }
  }

  private static String backout() throws Exception {
    try (JMSContext context = context(JMSContext.SESSION_TRANSACTED)) {
      send(context, "a");
      context.commit();
      JMSConsumer consumer = context.createConsumer(queue(context));
      got(consumer, 5000);
      send(context, "never");
      context.rollback();
      Message again = consumer.receive(5000);
      context.commit();
      return again.getBody(String.class) + " again, redelivered " + again.getJMSRedelivered() + ", count "
          + again.getIntProperty("JMSXDeliveryCount") + ", then " + got(consumer, 500);
    }
  }

  private static String listener(JMSContext context) throws Exception {
    BlockingQueue<String> heard = new ArrayBlockingQueue<>(100);
    JMSConsumer consumer = context.createConsumer(queue(context));
    consumer.setMessageListener(
        message -> {
          try {
            heard.add(message.getBody(String.class));
          } catch (Exception error) {
            heard.add(error.toString());
          }
        });
    Thread.sleep(1000);
    try (JMSContext sender = context(JMSContext.AUTO_ACKNOWLEDGE)) {
      send(sender, "a", "b", "x".repeat(300_000));
    }
    String all = heard.poll(10, TimeUnit.SECONDS) + " " + heard.poll(10, TimeUnit.SECONDS) + " " + heard.poll(10, TimeUnit.SECONDS).length();
    consumer.close();
    return all;
  }

  private static String largeMessage(JMSContext context) throws Exception {
    send(context, "x".repeat(900_000));
    return got(context.createConsumer(queue(context)), 5000).length() + " characters";
  }

  private static String browse(JMSContext context) throws Exception {
    send(context, "a", "b");
    QueueBrowser browser = context.createBrowser(queue(context));
    StringBuilder seen = new StringBuilder("browsed");
    for (Enumeration<?> found = browser.getEnumeration(); found.hasMoreElements(); ) {
      seen.append(' ').append(((TextMessage) found.nextElement()).getText());
    }
    browser.close();
    JMSConsumer consumer = context.createConsumer(queue(context));
    return seen + ", then got " + got(consumer, 5000) + " " + got(consumer, 5000);
  }

  private static String expiry(JMSContext context) throws Exception {
    context.createProducer().setTimeToLive(300).send(queue(context), "a");
    Thread.sleep(1000);
    return got(context.createConsumer(queue(context)), 1000);
  }

  private static String requestReply(JMSContext context) throws Exception {
    TemporaryQueue replies = context.createTemporaryQueue();
    JMSConsumer answered = context.createConsumer(replies);
    TextMessage request = context.createTextMessage("ping");
    request.setJMSReplyTo(replies);
    context.createProducer().send(queue(context), request);
    try (JMSContext other = context(JMSContext.AUTO_ACKNOWLEDGE)) {
      Message asked = other.createConsumer(queue(other)).receive(5000);
      other.createProducer().setJMSCorrelationID(asked.getJMSMessageID()).send(asked.getJMSReplyTo(), "pong");
    }
    Message reply = answered.receive(5000);
    String came = reply.getBody(String.class) + " " + request.getJMSMessageID().equals(reply.getJMSCorrelationID());
    answered.close();
    replies.delete();
    return came;
  }
}
