/** The operator's page: what is wrong with the service and what to do, then the state of each part. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { Answer } from "../../src/cli/contract.ts";
import { ApiError } from "../api/api.ts";
import { request } from "../api/client.ts";
import { queries } from "../api/queries.ts";
import { counted, duration, size } from "../elements/format.ts";
import { framedPage } from "../ui/framed-page.tsx";
import { Callout, Empty, Facts, Prose, Table, Tag, Time } from "../ui/parts.tsx";

type Service = Answer<"GET /v1/operator">;

/** Null: this reader is not the operator. */
const serviceQuery = queryOptions({
  queryKey: ["operator"],
  queryFn: async (): Promise<Service | null> => {
    try {
      return await request("GET /v1/operator", {});
    } catch (error) {
      if (error instanceof ApiError && [403, 404].includes(error.status)) return null;
      throw error;
    }
  },
});

const Section = ({ title, children }: { readonly title: string; readonly children: ReactNode }) => (
  <section>
    <h2>{title}</h2>
    {children}
  </section>
);

const Problems = ({ problems }: Pick<Service, "problems">) =>
  problems.length === 0 ? (
    <Callout tone="good">
      <strong>Everything works. </strong>The service has found no problem.
    </Callout>
  ) : (
    <section aria-label="Problems">
      <h2>{counted(problems.length, "problem")}</h2>
      {problems.map(({ code, message, remedy }) => (
        <Callout key={`${code} ${message}`} tone="bad">
          <strong>
            <Prose text={message} />
          </strong>
          <p>
            <Prose text={remedy} />
          </p>
          <p className="quiet">
            <code>{code}</code>
          </p>
        </Callout>
      ))}
    </section>
  );

const Database = ({ database }: Pick<Service, "database">) => (
  <Facts
    rows={[
      ["Server", `Postgres ${database.version}`],
      ["Size", size(database.size_bytes)],
      ["Connections", `${database.connections} of ${database.connections_max}`],
    ]}
  />
);

const Backlog = ({ waiting, oldest_at: oldestAt }: Service["queues"]["fires"]) => (
  <span>
    {waiting}
    {oldestAt !== null && ", oldest "}
    {oldestAt !== null && <Time at={oldestAt} />}
  </span>
);

const Queues = ({ queues, ownerless_sessions, stale_manifests }: Service) => (
  <Facts
    rows={[
      ["Queued runs", <Backlog {...queues.fires} />],
      ["Commands of actors", <Backlog {...queues.commands} />],
      ["Sessions without an owner", ownerless_sessions],
      ["Manifests that cannot be read", stale_manifests],
    ]}
  />
);

const spread = (times: Service["boots"]["waited"]): string =>
  times === null ? "no boot yet" : `${duration(times.p50_ms)} median, ${duration(times.p95_ms)} for 95 %`;

const Boots = ({ boots: { started, waited, booted, failures } }: Pick<Service, "boots">) => (
  <Facts
    rows={[
      ["Started", started],
      ["Waiting time", spread(waited)],
      ["Boot time", spread(booted)],
      [
        "Failed",
        failures.length === 0 ? "none" : failures.map(({ count, code }) => `${count} ${code}`).join(", "),
      ],
    ]}
  />
);

/** When background work ran last, if it ever did. */
const LastRun = ({ duty }: { readonly duty: Service["duties"][number] | undefined }) => (
  <span>
    <Time at={duty?.last_run_at ?? null} otherwise="not yet" />
    {duty?.failed === true && <Tag tone="bad">crashed</Tag>}
  </span>
);

const Recovery = ({ scheduler, duties }: Pick<Service, "scheduler" | "duties">) => (
  <Facts
    rows={[
      [
        "Scheduler ran",
        <span>
          <Time at={scheduler.ticked_at} />
          {scheduler.late && <Tag tone="warn">late</Tag>}
        </span>,
      ],
      ["Scheduled triggers", scheduler.scheduled],
      ["Recovery ran", <LastRun duty={duties.find(({ name }) => name === "recovery")} />],
      ["Search for orphans", <LastRun duty={duties.find(({ name }) => name === "orphans")} />],
    ]}
  />
);

const Sandboxes = ({ sandboxes }: Pick<Service, "sandboxes">) => {
  const { provider, summary, booting, waiting, doctor } = sandboxes;
  return (
    <Section title="Sandboxes of this node">
      <Facts
        rows={[
          [
            "Provider",
            <span>
              <code>{provider}</code> {summary}
            </span>,
          ],
          ["Booting", `${booting}, and ${waiting} waiting for a place`],
          ["Examined", <Time at={doctor?.at ?? null} otherwise="not since this start" />],
        ]}
      />
      {doctor !== null && doctor.problem !== null && (
        <Callout tone="bad">
          <Prose text={doctor.problem} />
        </Callout>
      )}
      {doctor !== null && (
        <Table
          heads={["Isolation", "Enforced by", "Detail"]}
          rows={doctor.findings.map(({ subject, how, detail }) => [
            subject,
            how === "not at all" ? <Tag tone="warn">{how}</Tag> : how,
            detail,
          ])}
        />
      )}
      <p className="actions">
        <button type="button" data-action="examine">
          Examine the sandboxes
        </button>
      </p>
    </Section>
  );
};

const Nodes = ({ nodes, node_id: own }: Pick<Service, "nodes" | "node_id">) => (
  <Section title="Nodes">
    <Table
      heads={["Node", "State", "Address", "Sandboxes"]}
      rows={nodes.map(({ id, url, dead_at: deadAt, sandboxes }) => [
        <span>
          <code>{id}</code>
          {id === own && <Tag>answers this page</Tag>}
        </span>,
        deadAt === null ? (
          "alive"
        ) : (
          <span>
            <Tag tone="bad">dead</Tag> <Time at={deadAt} />
          </span>
        ),
        url ?? "none yet",
        sandboxes,
      ])}
    />
  </Section>
);

const Duties = ({ duties }: Pick<Service, "duties">) => (
  <Section title="Background work of this node">
    <Table
      heads={["Work", "Every", "Last run", "Took", "Crashes"]}
      rows={duties.map((duty) => [
        <span>
          <code>{duty.name}</code>
          <span className="quiet"> {duty.about}</span>
        </span>,
        duration(duty.period_ms),
        <LastRun duty={duty} />,
        duty.took_ms === null ? "" : duration(duty.took_ms),
        duty.failures,
      ])}
    />
  </Section>
);

const words = (name: string): string => name.replaceAll("_", " ");

const Actors = ({ actors }: Pick<Service, "actors">) => (
  <Section title="Actors that moved in the last hour">
    {actors.length === 0 ? (
      <p className="quiet">None.</p>
    ) : (
      <Table
        heads={["Actor", "State", "Last event", "Commands", "When"]}
        rows={actors.map(({ kind, id, state, event, commands, at }) => [
          <span>
            {words(kind)} <code>{id}</code>
          </span>,
          <Tag>{words(state)}</Tag>,
          <code>{event}</code>,
          commands.join(", "),
          <Time at={at} />,
        ])}
      />
    )}
  </Section>
);

const ServiceState = ({ service }: { readonly service: Service }) => (
  <>
    <header className="head">
      <h1>Operator</h1>
      <p className="quiet">
        {`Version ${service.version} · Node.js ${service.runtime_version} · started `}
        <Time at={service.started_at} />
      </p>
    </header>
    <Problems problems={service.problems} />
    <div className="columns even">
      <Section title="Database">
        <Database database={service.database} />
      </Section>
      <Section title="Queues">
        <Queues {...service} />
      </Section>
      <Section title="Boots of the last 24 hours">
        <Boots boots={service.boots} />
      </Section>
      <Section title="Scheduler and recovery">
        <Recovery scheduler={service.scheduler} duties={service.duties} />
      </Section>
    </div>
    <Sandboxes sandboxes={service.sandboxes} />
    <Nodes nodes={service.nodes} node_id={service.node_id} />
    <Duties duties={service.duties} />
    <Actors actors={service.actors} />
  </>
);

const Operator = () => {
  const { data: service } = useQuery(serviceQuery);
  if (service === undefined) return null;
  if (service !== null) return <ServiceState service={service} />;
  return (
    <>
      <h1>Operator</h1>
      <Empty title="This page is for the operator.">
        Sign in with a token of the account that the first start of the service created. The token must reach
        the whole account.
      </Empty>
    </>
  );
};

export const pages = {
  operator: framedPage({
    load: async () => ({ service: await queries.query(serviceQuery) }),
    title: ({ service }) =>
      service === null || service.problems.length === 0
        ? "Operator"
        : `${counted(service.problems.length, "problem")} · Operator`,
    Body: Operator,
  }),
};
