import { defineConfig, type TestUserConfig } from "vitest/config";
import { TEST_MS, WAIT_MS } from "./test/support/patience.ts";
import { ClosingLine } from "./test/support/vitest/reporter.ts";
import { RealPartsFirst } from "./test/support/vitest/sequencer.ts";

/** Of every test, in all commands. */
export const EVERY_TEST: TestUserConfig = {
  // Node loads the modules itself, as it loads the service's. Through Vite a run took a third more CPU time.
  experimental: { viteModuleRunner: false, nodeLoader: false },
  setupFiles: ["test/support/vitest/compile-cache.ts"],
  // Tests leave much garbage behind. With more room for young objects (MB) they collect it less often.
  execArgv: ["--max-semi-space-size=32"],
  testTimeout: TEST_MS,
  hookTimeout: TEST_MS,
  teardownTimeout: WAIT_MS,
  expect: { poll: { timeout: WAIT_MS } },
};

export const DEEP = "test/**/*.deep.test.ts";
/**
 * Real parts together: sandboxes with the real agent runtime, whole services, the page over a service, other git servers, and daemons
 * that save whole checkouts (vitest.real.config.ts).
 */
export const REAL = "test/**/*.real.test.ts";
/** Files of which `npm test` or `npm run test:real` runs a sample (test/support/vitest/rings.ts). The deep tests run all of them. */
export const WHOLE_IN_DEEP = [
  "test/actors/warm-boot.test.ts",
  "test/builder/buildah.real.test.ts",
  "test/builder/egress.real.test.ts",
  "test/builder/hostile.real.test.ts",
  "test/builder/limits.real.test.ts",
  "test/daemon/control-refresh.real.test.ts",
  "test/daemon/conversation.real.test.ts",
  "test/daemon/nginx.real.test.ts",
  "test/daemon/opencode-deaths.test.ts",
  "test/daemon/opencode.real.test.ts",
  "test/daemon/standby.real.test.ts",
  "test/daemon/steering-requests.real.test.ts",
  "test/daemon/turns.real.test.ts",
  "test/daemon/workspace.real.test.ts",
  "test/dashboard/actions.real.test.ts",
  "test/dashboard/attachments.real.test.ts",
  "test/dashboard/axe.real.test.ts",
  "test/dashboard/conversation.real.test.ts",
  "test/dashboard/hostile.real.test.ts",
  "test/dashboard/keyboard.real.test.ts",
  "test/dashboard/review.real.test.ts",
  "test/dashboard/service.real.test.ts",
  "test/dashboard/sign-in.real.test.ts",
  "test/dashboard/terminal.real.test.ts",
  "test/dashboard/together.real.test.ts",
  "test/dashboard/workbench.real.test.ts",
  "test/demo/demo.real.test.ts",
  "test/docs/use-commands.real.test.ts",
  "test/e2e/acp-history.real.test.ts",
  "test/e2e/acp.real.test.ts",
  "test/e2e/backup.real.test.ts",
  "test/e2e/command-line.real.test.ts",
  "test/e2e/connectors.real.test.ts",
  "test/e2e/control.real.test.ts",
  "test/e2e/docker.real.test.ts",
  "test/e2e/environment.real.test.ts",
  "test/e2e/gvisor.real.test.ts",
  "test/e2e/kubernetes.real.test.ts",
  "test/e2e/master-key.real.test.ts",
  "test/e2e/model-providers.real.test.ts",
  "test/e2e/opencode-session.real.test.ts",
  "test/e2e/preview.real.test.ts",
  "test/e2e/relay.real.test.ts",
  "test/e2e/saved-work.real.test.ts",
  "test/e2e/several-nodes.real.test.ts",
  "test/e2e/editors.real.test.ts",
  "test/e2e/warm.real.test.ts",
  "test/git/external-faults.real.test.ts",
  "test/git/external-push.real.test.ts",
  "test/git/external-sshd.real.test.ts",
  "test/git/external.real.test.ts",
  "test/git/github.real.test.ts",
  "test/git/smart-http-wire.real.test.ts",
  "test/http/docs.real.test.ts",
  "test/http/git-matrix.real.test.ts",
  "test/http/merging-restart.test.ts",
  "test/http/sessions-restart.test.ts",
  "test/http/webhook-payloads.test.ts",
  "test/machines/session.test.ts",
  "test/proxy/uploads.real.test.ts",
  "test/sandbox/docker-engine.real.test.ts",
  "test/sandbox/docker.real.test.ts",
  "test/sandbox/gvisor.real.test.ts",
  "test/sandbox/images.real.test.ts",
  "test/sandbox/kubernetes/cluster.real.test.ts",
  "test/sandbox/kubernetes/doctor.real.test.ts",
  "test/sandbox/kubernetes/images.real.test.ts",
  "test/sandbox/local.real.test.ts",
  "test/sandbox/podman.real.test.ts",
  "test/simulation/plants.test.ts",
  "test/store/conversation-twin.test.ts",
  "test/store/twin.test.ts",
  "test/upgrade/upgrade.real.test.ts",
];
/**
 * Files that leave nothing behind in their process share workers. A worker for each costs half a second of CPU time, which is more
 * than most of these files take. Files that start many programs other than git are not here: a shared worker grows, and
 * each fork of a large process is slow.
 */
const TOGETHER = [
  "test/{actors,builder,connectors,domain,duties,features,ground,machines,nodes,proxy,services,sign-in,store,telemetry,tidy}/**/*.test.ts",
  "test/http/**/*.test.ts",
  "test/settings/database-address.test.ts",
  "test/{plain-english,tidy}.test.ts",
  "test/cli/{chat,commands,completion,environments,grammar,here,output,references,saved-work,secrets-try,ssh,wait,watch}.test.ts",
  "test/cli/operator/{audit,paths,prune,runtimes,tree}.test.ts",
  "test/daemon/{acp,acp-agents,acp-diff,acp-recall,acp-requests,briefing,checkout,config-dir,context,conversation-stream}.test.ts",
  "test/daemon/{credential,deaf-runtime,fallback,feed,feed-readers,gateway-calls,health,http-client,joined,log-ring}.test.ts",
  "test/daemon/{opencode-conversation,opencode-files,opencode-history,opencode-items,opencode-messages,opencode-summary}.test.ts",
  "test/daemon/{opencode-turns,packages,passed-calls,planning,ports,proxy,redact,report,required-secrets,route}.test.ts",
  "test/daemon/{saving-history,saving-memory,saving-status,smuggling,strays,turn-book,turn-errors,visitor,websocket}.test.ts",
  "test/dashboard/{,*/}!(page).test.ts",
  "test/demo/{scripted-model,script}.test.ts",
  "test/git/!(external-ssh|start).test.ts",
  "test/real-faults/slope.test.ts",
  "test/sandbox/!(engine-removal|watcher).test.ts",
  "test/sandbox/{images,kubernetes,packages}/*.test.ts",
  "test/saves/*.test.ts",
  "test/support/vitest/*.test.ts",
  "test/support/webhooks/webhook-ledger.test.ts",
  "test/upgrade/exchanges.test.ts",
];

/**
 * Files that replace a global of their process: its timers, or `fetch`. They share no worker, because the service that other
 * files share goes on between these files: its loops ran at the speed of the false clock, and filled the queue of Postgres.
 */
export const REPLACE_GLOBALS = [
  "test/connectors/wire.test.ts",
  "test/daemon/conversation-stream.test.ts",
  "test/daemon/health.test.ts",
  "test/dashboard/composer/writing.test.ts",
  "test/dashboard/conversation/causes.test.ts",
  "test/dashboard/live/outbox.test.ts",
  "test/dashboard/model-silence.test.ts",
  "test/ground/net/dial.test.ts",
];

/** Two a core of the smallest machine that is supported: half of a run's time its files wait for real parts. Six took longer. */
const WORKERS = 4;
/** What the tests of a whole run share. */
export const GLOBAL_SETUP = [
  "test/support/vitest/temporary-files.ts",
  "test/support/vitest/starts.ts",
  "test/support/postgres/offer.ts",
];

// eslint-disable-next-line import/no-default-export -- vitest reads the default export
export default defineConfig({
  test: {
    globalSetup: GLOBAL_SETUP,
    maxWorkers: WORKERS,
    sequence: { sequencer: RealPartsFirst },
    reporters: ["default", new ClosingLine("npm test")],
    projects: [
      {
        test: {
          ...EVERY_TEST,
          name: "together",
          include: TOGETHER,
          exclude: [...REPLACE_GLOBALS, DEEP, REAL],
          isolate: false,
        },
      },
      {
        test: {
          ...EVERY_TEST,
          name: "apart",
          include: ["test/**/*.test.ts"],
          exclude: [...TOGETHER, DEEP, REAL],
        },
      },
      { test: { ...EVERY_TEST, name: "globals", include: REPLACE_GLOBALS } },
    ],
  },
});
