/**
 * The worker's one service, for files that need no settings of their own. Each file has an account in it, so files do not
 * see each other. A service costs a second of CPU time to start, and most files need nothing that another one must not see.
 *
 * A file needs a service of its own (`startTestService`) if it gives settings or ports, changes how every daemon behaves, counts
 * what all accounts do, uses the powers of the first account, or restarts the service. It says which in a line.
 */
import { makeAccount } from "./requests.ts";
import { startTestService, type TestService } from "./service.ts";

/** Servers of the tests listen on loopback. */
const SETTINGS = { PLATFORM_GIT_ALLOW_HOSTS: "127.0.0.1", PLATFORM_CONNECTOR_ALLOW_HOSTS: "127.0.0.1" };
/** More than a file's sessions. */
const SESSION_CAP = 1000;

/** Files that share a worker share its modules (vitest.config.ts, `isolate: false`), so this is one for each worker. */
let shared: Promise<TestService> | null = null;

/** The service as the owner of that token sees it: requests without a token of their own send it. */
const actingAs = (service: TestService, token: string): TestService => ({
  ...service,
  token,
  request: (method, target, options = {}) =>
    service.request(method, target, {
      ...options,
      token: options.token === undefined ? token : options.token,
    }),
});

/** The service as its operator sees it. She sees what the others do in what all share, such as counters. */
export const asOperator = (service: TestService): TestService => actingAs(service, service.operatorToken);

/**
 * The shared service, as an owner of a new account sees it. `logs`, `daemon` and `inside` are everybody's. `close` leaves the
 * service to the next file, with daemons that are ready; it ends with the worker.
 *
 * @param cap how many sessions the account may run at once.
 */
export const shareService = async (cap: number = SESSION_CAP): Promise<TestService> => {
  shared ??= startTestService(SETTINGS);
  const service = await shared;
  return {
    ...actingAs(service, await makeAccount(service, cap, "admin")),
    close: async () => {
      service.daemon.become("ready");
    },
  };
};
