import com.ibm.mq.MQException;
import com.ibm.mq.MQMessage;
import com.ibm.mq.MQPutMessageOptions;
import com.ibm.mq.MQQueue;
import com.ibm.mq.MQQueueManager;
import com.ibm.mq.constants.CMQC;
import java.util.Hashtable;

/** IBM MQ classes for Java put persistent messages: {@code PORT QUEUE SIZE PER_SECOND THREADS UNIT}. UNIT 0: without syncpoint. */
public final class MqPut {
  public static void main(String[] words) throws Exception {
    MQException.log = null;
    int unit = Integer.parseInt(words[5]);
    Pace pace = new Pace(Integer.parseInt(words[3]), Integer.parseInt(words[4]), Integer.parseInt(words[2]));
    pace.run(() -> open(Integer.parseInt(words[0]), words[1], unit), Math.max(1, unit));
  }

  private static Pace.Sender open(int port, String name, int unit) throws MQException {
    Hashtable<String, Object> how = new Hashtable<>();
    how.put(CMQC.HOST_NAME_PROPERTY, "127.0.0.1");
    how.put(CMQC.PORT_PROPERTY, port);
    how.put(CMQC.CHANNEL_PROPERTY, "BARNABAS.SVRCONN");
    how.put(CMQC.TRANSPORT_PROPERTY, CMQC.TRANSPORT_MQSERIES_CLIENT);
    MQQueueManager manager = new MQQueueManager("QM1", how);
    MQQueue queue = manager.accessQueue(name, CMQC.MQOO_OUTPUT);
    MQPutMessageOptions options = new MQPutMessageOptions();
    options.options = unit > 0 ? CMQC.MQPMO_SYNCPOINT : CMQC.MQPMO_NO_SYNCPOINT;
    return (payload, commits) -> {
      MQMessage message = new MQMessage();
      message.format = CMQC.MQFMT_STRING;
      message.characterSet = 1208;
      message.persistence = CMQC.MQPER_PERSISTENT;
      message.write(payload);
      queue.put(message, options);
      if (unit > 0 && commits) {
        manager.commit();
      }
    };
  }
}
