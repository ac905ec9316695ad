import com.ibm.mq.MQEnvironment;
import com.ibm.mq.MQException;
import com.ibm.mq.MQGetMessageOptions;
import com.ibm.mq.MQMessage;
import com.ibm.mq.MQPutMessageOptions;
import com.ibm.mq.MQQueue;
import com.ibm.mq.MQQueueManager;
import com.ibm.mq.constants.CMQC;
import java.util.Arrays;
import java.util.Hashtable;

/** IBM MQ classes for Java. `SCENARIO PORT USER PASSWORD QUEUE [WORD]`: one line says what the scenario came to. */
public final class MqiClient {
  private static final int IN = CMQC.MQOO_INPUT_AS_Q_DEF;
  private static final int BOTH = IN | CMQC.MQOO_OUTPUT | CMQC.MQOO_INQUIRE;

  private static int port;
  private static String user;
  private static String password;
  private static String name;
  private static String word;

  public static void main(String[] words) {
    MQException.logExclude(CMQC.MQRC_NO_MSG_AVAILABLE);
    MQException.log = null;
    port = Integer.parseInt(words[1]);
    user = words[2];
    password = words[3];
    name = words[4];
    word = words.length > 5 ? words[5] : "";
    String came;
    try {
      came = play(words[0]);
    } catch (MQException error) {
      came = "reason " + error.reasonCode;
    } catch (Exception error) {
      came = "failed: " + error;
    }
    System.out.println("CAME " + came);
    System.exit(0);
  }

  private static String play(String scenario) throws Exception {
    return switch (scenario) {
      case "connect" -> "connected to " + connect("QM1").getName().trim();
      case "any_queue_manager" -> connect("").isConnected() ? "connected" : "not connected";
      case "wrong_queue_manager" -> "connected to " + connect("QM2").getName().trim();
      case "unknown_queue" -> "opened " + connect("QM1").accessQueue("SYSTEM.NONE", IN).getName();
      case "put_get" -> putGet();
      case "put1" -> put1();
      case "put" -> put();
      case "get" -> got(connect("QM1").accessQueue(name, IN), 5000);
      case "no_message" -> got(connect("QM1").accessQueue(name, IN), 300);
      case "no_wait" -> noWait();
      case "properties" -> properties();
      case "descriptor" -> descriptor();
      case "commit" -> commit();
      case "commit_two_queues" -> commitTwoQueues();
      case "backout" -> backout();
      case "browse" -> browse();
      case "depth" -> depth();
      case "large_message" -> largeMessage();
      case "truncated" -> truncated();
      case "expiry" -> expiry();
      case "match_by_id" -> matchById();
      case "request_reply" -> requestReply();
      case "hold" -> hold();
      case "idle" -> idle();
      default -> throw new IllegalArgumentException(scenario);
    };
  }

  private static MQQueueManager connect(String queueManager) throws MQException {
    Hashtable<String, Object> how = new Hashtable<>();
    how.put(CMQC.HOST_NAME_PROPERTY, "127.0.0.1");
    how.put(CMQC.PORT_PROPERTY, port);
    how.put(CMQC.CHANNEL_PROPERTY, "BARNABAS.SVRCONN");
    how.put(CMQC.TRANSPORT_PROPERTY, CMQC.TRANSPORT_MQSERIES_CLIENT);
    how.put(CMQC.USER_ID_PROPERTY, user);
    how.put(CMQC.PASSWORD_PROPERTY, password);
    how.put(CMQC.USE_MQCSP_AUTHENTICATION_PROPERTY, true);
    return new MQQueueManager(queueManager, how);
  }

  private static MQMessage message(String text) throws Exception {
    MQMessage message = new MQMessage();
    message.format = CMQC.MQFMT_STRING;
    message.writeString(text);
    return message;
  }

  private static MQGetMessageOptions wait(int options, int ms) {
    MQGetMessageOptions how = new MQGetMessageOptions();
    how.options = options | (ms > 0 ? CMQC.MQGMO_WAIT : 0);
    how.waitInterval = ms;
    return how;
  }

  private static String text(MQMessage message) throws Exception {
    return message.readStringOfByteLength(message.getDataLength());
  }

  private static String got(MQQueue queue, int ms) throws Exception {
    return got(queue, CMQC.MQGMO_NO_SYNCPOINT, ms);
  }

  private static String got(MQQueue queue, int options, int ms) throws Exception {
    MQMessage message = new MQMessage();
    queue.get(message, wait(options, ms));
    return text(message);
  }

  private static void put(MQQueue queue, int options, String... texts) throws Exception {
    MQPutMessageOptions how = new MQPutMessageOptions();
    how.options = options;
    for (String text : texts) {
      queue.put(message(text), how);
    }
  }

  private static String putGet() throws Exception {
    MQQueueManager manager = connect("QM1");
    MQQueue queue = manager.accessQueue(name, BOTH);
    put(queue, CMQC.MQPMO_NO_SYNCPOINT, "a", "b", "c");
    String all = got(queue, 5000) + " " + got(queue, 5000) + " " + got(queue, 5000);
    queue.close();
    manager.disconnect();
    return all;
  }

  private static String put() throws Exception {
    MQMessage message = message(word);
    message.setIntProperty("n", 5);
    MQPutMessageOptions how = new MQPutMessageOptions();
    how.options = CMQC.MQPMO_NO_SYNCPOINT;
    connect("QM1").put(name, message, how);
    return "put";
  }

  private static String put1() throws Exception {
    MQQueueManager manager = connect("QM1");
    MQPutMessageOptions how = new MQPutMessageOptions();
    how.options = CMQC.MQPMO_NO_SYNCPOINT;
    manager.put(name, message("one"), how);
    return got(manager.accessQueue(name, IN), 5000);
  }

  private static String noWait() throws Exception {
    MQQueue queue = connect("QM1").accessQueue(name, BOTH);
    put(queue, CMQC.MQPMO_NO_SYNCPOINT, "a", "b");
    String all = got(queue, 0) + " " + got(queue, 0);
    try {
      return all + " " + got(queue, 0);
    } catch (MQException error) {
      return all + ", then reason " + error.reasonCode;
    }
  }

  private static String properties() throws Exception {
    MQQueue queue = connect("QM1").accessQueue(name, BOTH);
    MQMessage sent = message("a");
    sent.setIntProperty("n", -3);
    sent.setStringProperty("s", "007");
    sent.setBooleanProperty("flag", true);
    queue.put(sent);
    MQMessage message = new MQMessage();
    queue.get(message, wait(CMQC.MQGMO_NO_SYNCPOINT, 5000));
    return text(message) + " n=" + message.getIntProperty("n") + " s=" + message.getStringProperty("s") + " flag="
        + message.getBooleanProperty("flag");
  }

  private static String descriptor() throws Exception {
    MQQueue queue = connect("QM1").accessQueue(name, BOTH);
    MQMessage sent = message("a");
    sent.correlationId = "correlation-1234567890ab".getBytes();
    sent.replyToQueueName = "REPLIES";
    sent.messageType = CMQC.MQMT_REQUEST;
    sent.priority = 7;
    queue.put(sent);
    MQMessage message = new MQMessage();
    queue.get(message, wait(CMQC.MQGMO_NO_SYNCPOINT, 5000));
    return Arrays.equals(sent.messageId, message.messageId) + " " + new String(message.correlationId) + " "
        + message.replyToQueueName.trim() + " " + message.replyToQueueManagerName.trim() + " " + message.messageType + " "
        + message.priority + " " + message.persistence + " " + message.userId.trim();
  }

  private static String commit() throws Exception {
    MQQueueManager manager = connect("QM1");
    MQQueue queue = manager.accessQueue(name, BOTH);
    put(queue, CMQC.MQPMO_SYNCPOINT, "a", "b", "c");
    String before;
    try {
      before = got(queue, 500);
    } catch (MQException error) {
      before = "reason " + error.reasonCode;
    }
    manager.commit();
    String all = got(queue, CMQC.MQGMO_SYNCPOINT, 5000) + " " + got(queue, CMQC.MQGMO_SYNCPOINT, 5000) + " "
        + got(queue, CMQC.MQGMO_SYNCPOINT, 5000);
    manager.commit();
    return before + ", then " + all;
  }

  private static String commitTwoQueues() throws Exception {
    MQQueueManager manager = connect("QM1");
    MQQueue first = manager.accessQueue(name, BOTH);
    MQQueue second = manager.accessQueue(name + ".2", BOTH);
    put(first, CMQC.MQPMO_SYNCPOINT, "a");
    put(second, CMQC.MQPMO_SYNCPOINT, "b");
    manager.backout();
    put(first, CMQC.MQPMO_SYNCPOINT, "c");
    put(second, CMQC.MQPMO_SYNCPOINT, "d");
    manager.commit();
    return got(first, 5000) + " " + got(second, 5000);
  }

  private static String backout() throws Exception {
    MQQueueManager manager = connect("QM1");
    MQQueue queue = manager.accessQueue(name, BOTH);
    put(queue, CMQC.MQPMO_NO_SYNCPOINT, "a");
    got(queue, CMQC.MQGMO_SYNCPOINT, 5000);
    put(queue, CMQC.MQPMO_SYNCPOINT, "never");
    manager.backout();
    MQMessage again = new MQMessage();
    queue.get(again, wait(CMQC.MQGMO_SYNCPOINT, 5000));
    manager.commit();
    String text = text(again);
    try {
      return text + " " + got(queue, 500);
    } catch (MQException error) {
      return text + " again, backout count " + again.backoutCount + ", then reason " + error.reasonCode;
    }
  }

  private static String browse() throws Exception {
    MQQueue queue = connect("QM1").accessQueue(name, BOTH | CMQC.MQOO_BROWSE);
    put(queue, CMQC.MQPMO_NO_SYNCPOINT, "a", "b");
    String seen = got(queue, CMQC.MQGMO_BROWSE_FIRST, 1000) + " " + got(queue, CMQC.MQGMO_BROWSE_NEXT, 1000);
    try {
      seen += " " + got(queue, CMQC.MQGMO_BROWSE_NEXT, 0);
    } catch (MQException error) {
      seen += " reason " + error.reasonCode;
    }
    return "browsed " + seen + ", then got " + got(queue, 5000) + " " + got(queue, 5000);
  }

  private static String depth() throws Exception {
    MQQueue queue = connect("QM1").accessQueue(name, BOTH);
    put(queue, CMQC.MQPMO_NO_SYNCPOINT, "a", "b", "c");
    int full = queue.getCurrentDepth();
    got(queue, 5000);
    return full + " " + queue.getMaximumMessageLength() + " " + queue.getQueueType() + " " + queue.getOpenInputCount();
  }

  private static String largeMessage() throws Exception {
    MQQueue queue = connect("QM1").accessQueue(name, BOTH);
    put(queue, CMQC.MQPMO_NO_SYNCPOINT, "x".repeat(900_000));
    MQMessage message = new MQMessage();
    queue.get(message, wait(CMQC.MQGMO_NO_SYNCPOINT, 5000));
    String came = text(message).length() + " characters, backout count " + message.backoutCount;
    try {
      put(queue, CMQC.MQPMO_NO_SYNCPOINT, "x".repeat(2_000_000));
      return came + ", then put";
    } catch (MQException error) {
      return came + ", then reason " + error.reasonCode;
    }
  }

  private static String truncated() throws Exception {
    MQQueue queue = connect("QM1").accessQueue(name, BOTH);
    put(queue, CMQC.MQPMO_NO_SYNCPOINT, "0123456789");
    try {
      queue.get(new MQMessage(), wait(CMQC.MQGMO_NO_SYNCPOINT, 5000), 4);
      return "got";
    } catch (MQException error) {
      return "reason " + error.reasonCode + ", then " + got(queue, 5000);
    }
  }

  private static String expiry() throws Exception {
    MQQueue queue = connect("QM1").accessQueue(name, BOTH);
    MQMessage sent = message("a");
    sent.expiry = 5;
    queue.put(sent);
    sent = message("b");
    sent.expiry = 600;
    queue.put(sent);
    Thread.sleep(1000);
    MQMessage message = new MQMessage();
    queue.get(message, wait(CMQC.MQGMO_NO_SYNCPOINT, 5000));
    return text(message) + (message.expiry > 500 && message.expiry < 600 ? " with time left" : " expiry " + message.expiry);
  }

  private static String matchById() throws Exception {
    MQQueue queue = connect("QM1").accessQueue(name, BOTH);
    put(queue, CMQC.MQPMO_NO_SYNCPOINT, "a");
    MQMessage message = new MQMessage();
    message.correlationId = "correlation-1234567890ab".getBytes();
    queue.get(message, wait(CMQC.MQGMO_NO_SYNCPOINT, 500));
    return text(message);
  }

  private static String requestReply() throws Exception {
    MQQueueManager manager = connect("QM1");
    MQQueue replies = manager.accessQueue("SYSTEM.DEFAULT.MODEL.QUEUE", IN, null, "AMQ.*", null);
    MQMessage request = message("ping");
    request.replyToQueueName = replies.getName();
    request.messageType = CMQC.MQMT_REQUEST;
    MQQueue queue = manager.accessQueue(name, BOTH);
    queue.put(request);
    MQQueueManager other = connect("QM1");
    MQMessage asked = new MQMessage();
    other.accessQueue(name, IN).get(asked, wait(CMQC.MQGMO_NO_SYNCPOINT, 5000));
    for (String text : new String[] {"of another", "pong"}) {
      MQMessage reply = message(text);
      reply.correlationId = text.equals("pong") ? asked.messageId : new byte[24];
      other.put(asked.replyToQueueName.trim(), reply);
    }
    MQMessage reply = new MQMessage();
    reply.correlationId = request.messageId;
    MQGetMessageOptions how = wait(CMQC.MQGMO_NO_SYNCPOINT, 5000);
    how.matchOptions = CMQC.MQMO_MATCH_CORREL_ID;
    replies.get(reply, how);
    String came = text(reply) + ", then " + got(replies, 5000);
    String gone = replies.getName().trim();
    replies.close();
    try {
      other.put(gone, message("late"));
      return came + ", and the queue remains";
    } catch (MQException error) {
      return came + ", then reason " + error.reasonCode;
    }
  }

  /** Takes a message in a unit of work and waits to be killed. */
  private static String hold() throws Exception {
    MQQueue queue = connect("QM1").accessQueue(name, IN);
    System.out.println("HOLDS " + got(queue, CMQC.MQGMO_SYNCPOINT, 5000));
    Thread.sleep(60_000);
    return "held";
  }

  private static String idle() throws Exception {
    MQQueue queue = connect("QM1").accessQueue(name, BOTH);
    put(queue, CMQC.MQPMO_NO_SYNCPOINT, "a");
    Thread.sleep(Long.parseLong(word) * 1000);
    return got(queue, 5000);
  }
}
