/** The daemon's own server, as it runs in a sandbox: route, user context, `src/proxy`. Its runtime is the upstream. */
import { LogRing } from "../../../daemon/logs/log-ring.ts";
import { Redactor } from "../../../src/domain/secret/redactor.ts";
import { Report } from "../../../daemon/report.ts";
import { DaemonServer } from "../../../daemon/http/server.ts";
import { freePort } from "../../support/machine/free-port.ts";
import { SESSION_ID, tellPort, TOKEN, upstreamPort } from "./listening.ts";

const report = new Report({ version: "0", redactor: new Redactor([]), repoUrl: "", branch: SESSION_ID });
const server = new DaemonServer({
  token: TOKEN,
  sessionId: SESSION_ID,
  runtimePort: upstreamPort(),
  blockedPorts: [],
  report,
  ring: new LogRing(() => undefined),
  control: (name) => Promise.resolve({ done: { name } }),
  abort: () => Promise.resolve(false),
});
report.setRuntime({ state: "ready" });
report.setRepo({ ready: true });
const port = await freePort();
await server.listen({ host: "127.0.0.1", port });
tellPort(port);
