import java.net.InetSocketAddress;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;

/**
 * Iceberg's own REST catalog, on loopback only: its own main program listens on all interfaces.
 *
 * The first argument is the port; all others are properties of the catalog behind it, NAME=VALUE.
 */
public class RestCatalog {
  public static void main(String[] words) throws Exception {
    Map<String, String> properties = new LinkedHashMap<>();
    for (int i = 1; i < words.length; i++) {
      String[] parts = words[i].split("=", 2);
      properties.put(parts[0], parts[1]);
    }
    var catalog = CatalogUtil.buildIcebergCatalog("behind", properties, null);
    var handler = new ServletContextHandler();
    var servlet = new RESTCatalogServlet(new RESTCatalogAdapter(catalog));
    handler.addServlet(new ServletHolder(servlet), "/*");
    var server = new Server(new InetSocketAddress("127.0.0.1", Integer.parseInt(words[0])));
    server.setHandler(handler);
    server.start();
    server.join();
  }
}
