/** What docs/operate ships, against a real Prometheus that reads a real service: the alerts and the dashboard. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freePort } from "../support/machine/free-port.ts";
import { promtool, startPrometheus, type Prometheus } from "../support/machine/prometheus.ts";
import { prometheusProgram, promtoolProgram } from "../support/requirements.ts";
import { Installation, type Life } from "../support/service/process-service.ts";
import { eventually } from "../support/service/requests.ts";
import { ALERT_CASES, ruleTests } from "./alert-cases.ts";

const OPERATE = path.join(import.meta.dirname, "../../docs/operate");
const ALERTS = path.join(OPERATE, "alerts.yml");
const alerts = readFileSync(ALERTS, "utf8");
const dashboard = readFileSync(path.join(OPERATE, "grafana-dashboard.json"), "utf8");

/** The expressions of all panels, with Grafana's variable filled in. */
const expressions = (): readonly string[] => {
  const { panels } = JSON.parse(dashboard) as {
    readonly panels: readonly { readonly targets: readonly { readonly expr: string }[] }[];
  };
  return panels.flatMap(({ targets }) =>
    targets.map(({ expr }) => expr.replaceAll("$__rate_interval", "1m")),
  );
};

const namesIn = (text: string): readonly string[] => [...new Set(text.match(/platform_[a-z_]+/g))];
const anchor = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^a-z0-9 -]/g, "")
    .replaceAll(" ", "-");

describe.skipIf(promtoolProgram === undefined)("the alerts", () => {
  it("are valid rules", async () => {
    expect(await promtool("check", "rules", ALERTS)).toContain(`SUCCESS: ${ALERT_CASES.length} rules found`);
  });

  it("fire for what they are for, and not for what is still right", async () => {
    const directory = mkdtempSync(path.join(tmpdir(), "rules-"));
    const file = path.join(directory, "tests.yml");
    writeFileSync(file, JSON.stringify(ruleTests(ALERTS, ALERT_CASES)));
    try {
      expect(await promtool("test", "rules", file)).toContain("SUCCESS");
    } finally {
      rmSync(directory, { recursive: true });
    }
  });

  it("each have cases, and a link to a heading of troubleshooting", () => {
    const named = [...alerts.matchAll(/- alert: (\w+)/g)].map(([, name]) => name);
    expect(ALERT_CASES.map(({ alert }) => alert)).toEqual(named);
    const troubleshooting = readFileSync(path.join(OPERATE, "troubleshooting.md"), "utf8");
    const headings = [...troubleshooting.matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => anchor(heading));
    const anchors = new Set(headings);
    const page = "https://platform.example.com/docs/guide/operate/troubleshooting";
    const links = [...alerts.matchAll(/runbook_url: (\S+)#(\S+)/g)].map(
      ([, at, link]) => at === page && link,
    );
    expect(links).toHaveLength(named.length);
    expect(links.filter((link) => !anchors.has(link || ""))).toEqual([]);
  });
});

describe.skipIf(prometheusProgram === undefined)("a Prometheus that reads a running service", () => {
  let installation: Installation;
  let life: Life;
  let prometheus: Prometheus;
  beforeAll(async () => {
    installation = await Installation.open();
    const port = await freePort();
    life = await installation.start({
      PLATFORM_SANDBOX_PROVIDER: "simulated",
      PLATFORM_METRICS_PORT: String(port),
    });
    prometheus = await startPrometheus(`127.0.0.1:${port}`, ALERTS);
  });
  afterAll(async () => {
    await prometheus.stop();
    await life.end("SIGTERM");
    await installation.close();
  });

  it("has each metric that a rule or a panel names, and more", async () => {
    const wanted = namesIn(alerts + dashboard);
    expect(wanted.length).toBeGreaterThan(25);
    await eventually(async () => {
      const found = await prometheus.query('count by (__name__) ({__name__=~"platform_.+"})');
      const names = new Set(found.map(({ metric }) => metric["__name__"]));
      expect(wanted.filter((name) => !names.has(name))).toEqual([]);
    });
  });

  it("can evaluate each panel and each rule, and no alert fires", async () => {
    for (const expression of expressions())
      await expect(prometheus.query(expression), expression).resolves.toBeDefined();
    await eventually(async () => {
      const rules = await prometheus.rules();
      expect(rules).toHaveLength(ALERT_CASES.length);
      expect(rules.filter(({ health }) => health !== "ok")).toEqual([]);
    });
    expect((await prometheus.rules()).filter(({ state }) => state !== "inactive")).toEqual([]);
    expect(await prometheus.query('up{job="platform"}')).toMatchObject([{ value: 1 }]);
  });
});
