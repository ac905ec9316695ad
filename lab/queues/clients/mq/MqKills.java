import com.ibm.mq.MQException;
import com.ibm.mq.MQGetMessageOptions;
import com.ibm.mq.MQMessage;
import com.ibm.mq.MQPutMessageOptions;
import com.ibm.mq.MQQueue;
import com.ibm.mq.MQQueueManager;
import com.ibm.mq.constants.CMQC;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Hashtable;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Units of work while the node is killed: {@code PORT USER PASSWORD FIRST SECOND UNIT}. Senders put numbered messages into FIRST, movers get from FIRST and put into SECOND in one
 * unit, getters get from SECOND. A line says how each unit ended, as its program knows it:
 *
 * <p>{@code put|moved|got sure|not|doubt ID…}: MQCMIT said yes; it was not called or said that all went back; it did not say.
 *
 * <p>{@code STOP} on standard input ends the senders, {@code END} the rest.
 */
public final class MqKills {
  private static final int SENDERS = 3;
  private static final int OTHERS = 3;

  private static String[] words;
  private static int unit;
  private static volatile boolean sends = true;
  private static volatile boolean runs = true;

  public static void main(String[] given) throws Exception {
    MQException.log = null;
    words = given;
    unit = Integer.parseInt(words[5]);
    List<Thread> senders = new ArrayList<>();
    List<Thread> others = new ArrayList<>();
    for (int at = 0; at < SENDERS; at++) {
      int number = at;
      senders.add(begin(() -> send(number)));
    }
    for (int at = 0; at < OTHERS; at++) {
      others.add(begin(() -> take("moved", words[3], words[4])));
      others.add(begin(() -> take("got", words[4], null)));
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
    for (Thread one : others) {
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

  private static void say(String what, String how, List<String> ids, MQException why) {
    if (!ids.isEmpty()) {
      System.out.println(what + " " + how + " " + String.join(" ", ids) + (why == null ? "" : " # " + why.reasonCode));
    }
  }

  /** Reasons of MQCMIT that say that all of the unit went back. */
  private static String how(MQException error) {
    return error.reasonCode == CMQC.MQRC_BACKED_OUT ? "not" : "doubt";
  }

  private static void pause(int ms) {
    try {
      Thread.sleep(ms);
    } catch (InterruptedException never) {
      throw new IllegalStateException(never);
    }
  }

  private static MQQueueManager connect() throws MQException {
    Hashtable<String, Object> how = new Hashtable<>();
    how.put(CMQC.HOST_NAME_PROPERTY, "127.0.0.1");
    how.put(CMQC.PORT_PROPERTY, Integer.parseInt(words[0]));
    how.put(CMQC.CHANNEL_PROPERTY, "BARNABAS.SVRCONN");
    how.put(CMQC.TRANSPORT_PROPERTY, CMQC.TRANSPORT_MQSERIES_CLIENT);
    how.put(CMQC.USER_ID_PROPERTY, words[1]);
    how.put(CMQC.PASSWORD_PROPERTY, words[2]);
    how.put(CMQC.USE_MQCSP_AUTHENTICATION_PROPERTY, true);
    return new MQQueueManager("QM1", how);
  }

  private static void leave(MQQueueManager manager) {
    try {
      if (manager != null) {
        manager.disconnect();
      }
    } catch (MQException gone) {
      // Its connection is lost already.
    }
  }

  private static void put(MQQueue queue, String id) throws Exception {
    MQMessage message = new MQMessage();
    message.format = CMQC.MQFMT_STRING;
    message.characterSet = 1208;
    message.writeString(id);
    MQPutMessageOptions how = new MQPutMessageOptions();
    how.options = CMQC.MQPMO_SYNCPOINT;
    queue.put(message, how);
  }

  private static String get(MQQueue queue, int waitMs) throws Exception {
    MQGetMessageOptions how = new MQGetMessageOptions();
    how.options = CMQC.MQGMO_SYNCPOINT | (waitMs > 0 ? CMQC.MQGMO_WAIT : 0);
    how.waitInterval = waitMs;
    MQMessage message = new MQMessage();
    try {
      queue.get(message, how);
    } catch (MQException empty) {
      if (empty.reasonCode == CMQC.MQRC_NO_MSG_AVAILABLE) {
        return null;
      }
      throw empty;
    }
    return message.readStringOfByteLength(message.getDataLength());
  }

  private static void send(int number) {
    long next = 0;
    while (sends) {
      MQQueueManager manager = null;
      List<String> ids = new ArrayList<>();
      try {
        manager = connect();
        MQQueue queue = manager.accessQueue(words[3], CMQC.MQOO_OUTPUT);
        while (sends) {
          int count = 1 + ThreadLocalRandom.current().nextInt(unit);
          for (int at = 0; at < count; at++) {
            ids.add(number + "-" + next++);
            put(queue, ids.get(at));
          }
          commit(manager, "put", ids);
          pause(20);
        }
        return;
      } catch (Exception error) {
        // Before MQCMIT: nothing of it is there.
        say("put", "not", ids, null);
        pause(100);
      } finally {
        leave(manager);
      }
    }
  }

  /** Ends a unit and says how. `ids` is empty afterwards. */
  private static void commit(MQQueueManager manager, String what, List<String> ids) throws MQException {
    List<String> of = new ArrayList<>(ids);
    ids.clear();
    try {
      manager.commit();
      say(what, "sure", of, null);
    } catch (MQException error) {
      say(what, how(error), of, error);
      throw error;
    }
  }

  private static void take(String what, String from, String to) {
    while (runs) {
      MQQueueManager manager = null;
      List<String> ids = new ArrayList<>();
      try {
        manager = connect();
        MQQueue source = manager.accessQueue(from, CMQC.MQOO_INPUT_AS_Q_DEF);
        MQQueue target = to == null ? null : manager.accessQueue(to, CMQC.MQOO_OUTPUT);
        while (runs) {
          String id = get(source, 500);
          while (id != null) {
            ids.add(id);
            if (target != null) {
              put(target, id);
            }
            id = ids.size() < unit ? get(source, 0) : null;
          }
          if (!ids.isEmpty()) {
            commit(manager, what, ids);
          }
        }
      } catch (Exception error) {
        say(what, "not", ids, null);
        pause(100);
      } finally {
        leave(manager);
      }
    }
  }
}
