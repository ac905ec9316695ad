import java.io.ByteArrayOutputStream;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import javax.security.auth.x500.X500Principal;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/** Writes what the JVM prints for distinguished names, and what Apache's SslPrincipalMapper makes of them. */
public final class TlsVectors {
    private static final int UTF8 = 0x0c, PRINTABLE = 0x13, T61 = 0x14, IA5 = 0x16, GENERAL = 0x1b, UNIVERSAL = 0x1c,
        BMP = 0x1e, OCTETS = 0x04, INTEGER = 0x02;
    private static final String[] OIDS = {
        "550403", "550406", "550407", "550408", "55040a", "55040b", "550409", "0992268993f22c640119", "0992268993f22c640101",
        "550405", "550404", "55042a", "550461", "55040c", "2a864886f70d010901", "2b0601040182370d0203", "550411", "55042e",
        "883703", "ce1f8181818101", "7f", "00",
    };
    private static final String[] RULES = {
        "DEFAULT", "", " DEFAULT , DEFAULT", "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,DEFAULT", "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L",
        "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L", "RULE:^CN=(.*?), OU=.*$/$1/U", "RULE:.*/$0/", "RULE:.*/x/", "RULE:(.*)/$1-/",
        "RULE:^CN=(\\w+).*$/$1/U , DEFAULT", "RULE:^CN=([^,]+)(,.*)?$/$1$2$3$12/", "RULE:^CN=([^,]+).*$/\\$1/",
        "RULE:^CN=([^,]+).*$/a\\/b $1/", "RULE:CN=(.*?)/$1/", "RULE:^CN=([^,]+),?(.*)$/$2 $10 $01/", "RULE:^CN=(\\d+)\\D*$/n$1/",
        "RULE:^CN=([^,]+).*$/$1/L,RULE:^O=(.*)$/o-$1/", "RULE:^.*$/fixed/U", "RULE:^C(N=.*)$/$1$/", "RULE:^CN=.*$/$1/",
        "RULE:^CN=.*$/a$/", "RULE:[\\w=]+,[^,]*/two/", "RULE:()/x/", "RULE:x*/-/", "RULE:(CN)=(.)(.)(.).*/$11$2$33/",
        "RULE:^UID=([^,]+).*/$1/,RULE:^CN=([^,]+).*/c:$1/", "RULE:^CN=([\\s\\S]*?)(?:,.*)?$/$1/",
        "RULE:^CN=(\u00fc.*)$/$1/U", "RULE:^CN=(.*)\\\\,(.*)$/$1 $2/", "RULE:a/b/L,RULE:/x/", "RULE:x", "nonsense", "DEFAULTx", "RULE:a/b/X",
        "RULE:a/b/LL", "RULE:^CN=a$/a b, c/,DEFAULT",
    };
    private static final HexFormat HEX = HexFormat.of();

    private static byte[] tlv(int tag, byte[]... contents) {
        ByteArrayOutputStream content = new ByteArrayOutputStream();
        for (byte[] part : contents) content.writeBytes(part);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        out.write(tag);
        int length = content.size();
        if (length >= 0x80) {
            if (length > 0xff) {
                out.write(0x82);
                out.write(length >> 8);
            } else out.write(0x81);
        }
        out.write(length);
        out.writeBytes(content.toByteArray());
        return out.toByteArray();
    }

    private static byte[] pair(String oid, int tag, byte[] value) {
        return tlv(0x30, tlv(0x06, HEX.parseHex(oid)), tlv(tag, value));
    }

    private static byte[] text(int tag, String value) {
        return value.getBytes(switch (tag) {
            case BMP -> StandardCharsets.UTF_16BE;
            case T61 -> StandardCharsets.ISO_8859_1;
            default -> StandardCharsets.UTF_8;
        });
    }

    private static byte[] name(byte[]... sets) {
        return tlv(0x30, sets);
    }

    private static final String[] VALUES = {
        "a", "kafka", "Kafka 1", " lead", "trail ", "  two  ", " ", "   ", "", "a,b", "a+b", "a=b", "a\"b", "a\\b", "a<b>c", "a;b",
        "#hash", "a#b", "M\u00fcller", "\u00fcber", "\u65e5\u672c", "\ud83d\ude00", "tab\tx", "line\nx", "cr\rx", "\rcr\r", "nul\u0000x", "a/b:c.d-e_f",
        "*.example.com", "O'Neil", "x@example.com", "a  b", "\u00a0nbsp", "123", "\u0661\u0662", "\u0130stanbul", "STRASSE \u00df",
    };

    private static List<byte[]> names() {
        List<byte[]> names = new ArrayList<>();
        names.add(name());
        for (String text : new String[] {
            "CN=a,OU=b,O=c,L=d,ST=e,C=DE", "CN=kafka,OU=ServiceUsers,O=Org,L=Town,ST=State,C=US", "CN=\"a, b\",O=x", "UID=u1,DC=example,DC=com",
            "EMAILADDRESS=x@example.com,CN=x", "SERIALNUMBER=12,CN=y", "T=Dr,GIVENNAME=A,SURNAME=B,CN=z", "CN=a+OU=b,O=c", "STREET=Way 1,CN=q",
            "DNQ=1,CN=w", "1.2.3.4=#0c0161,CN=v", "CN=Eve,OU=Sales", "CN=123", "O=only", "CN=a",
        }) names.add(new X500Principal(text).getEncoded());
        for (String value : VALUES)
            for (int tag : new int[] {UTF8, PRINTABLE, IA5, T61, BMP, GENERAL, UNIVERSAL, OCTETS})
                names.add(name(tlv(0x31, pair("550403", tag, text(tag, value)))));
        for (String oid : OIDS)
            for (int tag : new int[] {UTF8, PRINTABLE, INTEGER})
                names.add(name(tlv(0x31, pair(oid, tag, text(tag, "v")))));
        Random random = new Random(17);
        for (int i = 0; i < 300; i++) {
            byte[][] sets = new byte[1 + random.nextInt(5)][];
            for (int set = 0; set < sets.length; set++) {
                byte[][] pairs = new byte[random.nextInt(8) == 0 ? 2 : 1][];
                for (int p = 0; p < pairs.length; p++)
                    pairs[p] = pair(OIDS[random.nextInt(random.nextInt(4) == 0 ? OIDS.length : 9)], random.nextInt(6) == 0 ? BMP : UTF8,
                        VALUES[random.nextInt(VALUES.length)].getBytes(StandardCharsets.UTF_8));
                sets[set] = tlv(0x31, pairs);
            }
            names.add(name(sets));
        }
        return names;
    }

    private static String hex(String text) {
        return text.isEmpty() ? "-" : HEX.formatHex(text.getBytes(StandardCharsets.UTF_8));
    }

    public static void main(String[] args) throws Exception {
        List<String> shown = new ArrayList<>();
        try (PrintWriter out = new PrintWriter(args[0], StandardCharsets.UTF_8)) {
            for (byte[] name : names()) {
                String text;
                try {
                    text = new X500Principal(name).getName();
                } catch (IllegalArgumentException refused) {
                    continue;
                }
                if (text.indexOf('\ufffd') < 0) shown.add(text);
                out.println("name " + HEX.formatHex(name) + " " + hex(text));
            }
            for (String rules : RULES) {
                SslPrincipalMapper mapper;
                try {
                    mapper = SslPrincipalMapper.fromRules(rules);
                } catch (IllegalArgumentException refused) {
                    out.println("refused " + hex(rules));
                    continue;
                }
                out.println("rules " + hex(rules));
                for (int i = 0; i < shown.size(); i += i < 60 ? 1 : 7) {
                    String result;
                    try {
                        result = "= " + hex(mapper.getName(shown.get(i)));
                    } catch (Exception none) {
                        result = "none";
                    }
                    out.println("  " + hex(shown.get(i)) + " " + result);
                }
            }
        }
    }
}
