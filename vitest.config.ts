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
 * that save whole checkouts (test/real.config.ts).
 */
export const REAL = "test/**/*.real.test.ts";
/** Files of which `npm test` or `npm run test:real` runs a sample (test/support/vitest/rings.ts). The deep tests run all of them. */
export const WHOLE_IN_DEEP = [
  "test/actors/sandboxes/warm-boot.test.ts",
  "test/builder/buildah.real.test.ts",
  "test/builder/egress.real.test.ts",
  "test/builder/hostile.real.test.ts",
  "test/builder/limits.real.test.ts",
  "test/daemon/doors/control-refresh.real.test.ts",
  "test/daemon/opencode/conversation.real.test.ts",
  "test/daemon/doors/nginx.real.test.ts",
  "test/daemon/opencode/opencode-deaths.test.ts",
  "test/daemon/opencode/opencode.real.test.ts",
  "test/daemon/standby.real.test.ts",
  "test/daemon/opencode/turns.real.test.ts",
  "test/daemon/saving/workspace.real.test.ts",
  "test/dashboard/actions/actions.real.test.ts",
  "test/dashboard/composer/attachments.real.test.ts",
  "test/dashboard/axe.real.test.ts",
  "test/dashboard/conversation/conversation.real.test.ts",
  "test/dashboard/hostile.real.test.ts",
  "test/dashboard/keyboard.real.test.ts",
  "test/dashboard/review/review.real.test.ts",
  "test/dashboard/service.real.test.ts",
  "test/dashboard/people/sign-in.real.test.ts",
  "test/dashboard/review/terminal.real.test.ts",
  "test/dashboard/home/together.real.test.ts",
  "test/dashboard/review/workbench.real.test.ts",
  "test/demo/demo.real.test.ts",
  "test/docs/use-commands.real.test.ts",
  "test/e2e/agents/acp-history.real.test.ts",
  "test/e2e/installation/backup.real.test.ts",
  "test/e2e/reach/command-line.real.test.ts",
  "test/e2e/connectors/connectors.real.test.ts",
  "test/e2e/reach/control.real.test.ts",
  "test/e2e/docker.real.test.ts",
  "test/e2e/environments/environment.real.test.ts",
  "test/e2e/gvisor.real.test.ts",
  "test/e2e/kubernetes.real.test.ts",
  "test/e2e/installation/master-key.real.test.ts",
  "test/e2e/connectors/model-providers.real.test.ts",
  "test/e2e/agents/opencode-session.real.test.ts",
  "test/e2e/reach/relay.real.test.ts",
  "test/e2e/saved-work/saved-work.real.test.ts",
  "test/e2e/nodes/several-nodes.real.test.ts",
  "test/e2e/reach/editors.real.test.ts",
  "test/e2e/warm.real.test.ts",
  "test/git/external/external-faults.real.test.ts",
  "test/git/external/external-push.real.test.ts",
  "test/git/external/external-sshd.real.test.ts",
  "test/git/external/external.real.test.ts",
  "test/git/github/github.real.test.ts",
  "test/git/server/smart-http-wire.real.test.ts",
  "test/http/pages/docs.real.test.ts",
  "test/http/change-requests/git-matrix.real.test.ts",
  "test/http/change-requests/merging-restart.test.ts",
  "test/http/sessions/sessions-restart.test.ts",
  "test/http/triggers/webhook-payloads.test.ts",
  "test/machines/session.test.ts",
  "test/proxy/uploads.real.test.ts",
  "test/sandbox/isolation/docker-engine.real.test.ts",
  "test/sandbox/isolation/docker.real.test.ts",
  "test/sandbox/isolation/gvisor.real.test.ts",
  "test/sandbox/images.real.test.ts",
  "test/sandbox/kubernetes/cluster.real.test.ts",
  "test/sandbox/kubernetes/doctor.real.test.ts",
  "test/sandbox/kubernetes/images.real.test.ts",
  "test/sandbox/machine/local.real.test.ts",
  "test/sandbox/isolation/podman.real.test.ts",
  "test/simulation/plants.test.ts",
  "test/store/sessions/conversation-twin.test.ts",
  "test/store/twin.test.ts",
  "test/upgrade/upgrade.real.test.ts",
];
/**
 * Files that start many programs other than git, or leave something behind in their process. All others share workers, because a
 * worker for each costs half a second of CPU time, which is more than most files take. A shared worker grows, and each fork of a
 * large process is slow.
 */
const APART = [
  "test/build-cache.test.ts",
  "test/cli/endpoint.test.ts",
  "test/cli/login.test.ts",
  "test/installation/operator/database.test.ts",
  "test/installation/operator/doctor.test.ts",
  "test/installation/operator/runtime-entries.test.ts",
  "test/cli/process.test.ts",
  "test/cli/talk/markdown.test.ts",
  "test/cli/talk/talk.test.ts",
  "test/daemon/acp/acp-process.test.ts",
  "test/daemon/acp/acp-rejections.test.ts",
  "test/daemon/bundle.test.ts",
  "test/daemon/daemon.test.ts",
  "test/daemon/doors/control.test.ts",
  "test/daemon/doors/terminal.test.ts",
  "test/daemon/doors/upstream.test.ts",
  "test/daemon/logs.test.ts",
  "test/daemon/models/going-on.test.ts",
  "test/daemon/models/subscription.test.ts",
  "test/daemon/opencode/opencode-deaths.test.ts",
  "test/daemon/opencode/opencode-effort.test.ts",
  "test/daemon/orphan.test.ts",
  "test/daemon/output.test.ts",
  "test/daemon/saving/checkout-places.test.ts",
  "test/daemon/saving/own-edit.test.ts",
  "test/daemon/saving/saving.test.ts",
  "test/daemon/saving/setup.test.ts",
  "test/daemon/talk/runtime-commands.test.ts",
  "test/daemon/talk/supervision.test.ts",
  "test/dashboard/frame/page.test.ts",
  "test/git/external/external-ssh.test.ts",
  "test/git/start.test.ts",
  "test/heap.test.ts",
  "test/inherited.test.ts",
  "test/sandbox/isolation/engine-removal.test.ts",
  "test/sandbox/machine/watcher.test.ts",
  "test/sandbox/remote/link.test.ts",
  "test/settings/config.test.ts",
  "test/simulation/plants.test.ts",
  "test/simulation/simulation.test.ts",
  "test/starter/short.test.ts",
  "test/starter/starter.test.ts",
  "test/support/postgres/offer.test.ts",
  "test/support/webhooks/webhook-sender.test.ts",
  "test/upgrade/states.test.ts",
];
/**
 * Files that replace a global of their process: its timers, or `fetch`. They share no worker, because the service that other
 * files share goes on between these files: its loops ran at the speed of the false clock, and filled the queue of Postgres.
 */
export const REPLACE_GLOBALS = [
  "test/connectors/wire.test.ts",
  "test/daemon/talk/conversation-stream.test.ts",
  "test/daemon/doors/health.test.ts",
  "test/dashboard/composer/writing.test.ts",
  "test/dashboard/conversation/causes.test.ts",
  "test/dashboard/live/outbox.test.ts",
  "test/dashboard/conversation/model-silence.test.ts",
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
          include: ["test/**/*.test.ts"],
          exclude: [...APART, ...REPLACE_GLOBALS, DEEP, REAL],
          isolate: false,
        },
      },
      { test: { ...EVERY_TEST, name: "apart", include: [...APART, ...REPLACE_GLOBALS] } },
    ],
  },
});
