/** One receiver of a project's events, and what it was sent. */
import { useInfiniteQuery } from "@tanstack/react-query";
import { request } from "../api/client.ts";
import { pagedQuery } from "../api/lists.ts";
import type { Project } from "../api/projects.ts";
import { queries } from "../api/queries.ts";
import { projectLink } from "../elements/parts.ts";
import { counted } from "../elements/format.ts";
import { RoleAct } from "../ui/act.tsx";
import { framedPage } from "../ui/framed-page.tsx";
import { Badge, Callout, CopyBlock, Detail, Empty, Facts, More, Row, Time, Trail } from "../ui/parts.tsx";
import {
  type Delivery,
  REASONS,
  type Receiver,
  remove,
  rotate,
  sendAgain,
  test,
  triedWords,
} from "./receivers.ts";

const deliveriesQuery = (pid: string, id: string) =>
  pagedQuery(["deliveries", pid, id], (query) =>
    request("GET /v1/projects/:pid/webhooks/:id/deliveries", { params: { pid, id }, query }),
  );

interface Shown {
  readonly project: Project;
  readonly receiver: Receiver;
}

const DeliveryRow = ({
  delivery,
  onAgain,
}: {
  readonly delivery: Delivery;
  readonly onAgain: () => Promise<void>;
}) => {
  const { type, status, tries, created_at: at, next_try_at: next, last_try: last, data } = delivery;
  return (
    <Row
      states={<Badge status={status} />}
      actions={
        status !== "pending" && (
          <RoleAct entry="replay-delivery" label="Send again" about={type} does={onAgain} />
        )
      }
    >
      <code>{type}</code>
      <Detail>
        <Time at={at} />
        {` · ${counted(tries, "try", "tries")}`}
        {next !== null && status === "pending" && (
          <>
            {" · next "}
            <Time at={next} />
          </>
        )}
      </Detail>
      {last !== null && (
        <span className={status === "delivered" ? "quiet" : "reason"}>{triedWords(last)}</span>
      )}
      <details className="group">
        <summary>Content</summary>
        <CopyBlock text={JSON.stringify(data, null, 2)} what="the content" />
        {last !== null && last.answer !== "" && (
          <>
            <p>The receiver's answer:</p>
            <pre className="text" tabIndex={0} aria-label="the receiver's answer">
              {last.answer}
            </pre>
          </>
        )}
      </details>
    </Row>
  );
};

const Deliveries = ({ project: { id: pid }, receiver: { id } }: Shown) => {
  const list = useInfiniteQuery(deliveriesQuery(pid, id));
  const deliveries = list.data?.pages.flatMap((page) => page.deliveries) ?? [];
  return (
    <>
      <section>
        <h2>Deliveries</h2>
        {deliveries.length === 0 ? (
          <Empty title="Nothing was sent yet.">A delivery appears here when one of the events happens.</Empty>
        ) : (
          <ul className="rows">
            {deliveries.map((one) => (
              <DeliveryRow key={one.id} delivery={one} onAgain={() => sendAgain(pid, id, one.id)} />
            ))}
          </ul>
        )}
      </section>
      <More list={list}>Show older deliveries</More>
    </>
  );
};

const Acts = ({ project: { id: pid }, receiver }: Shown) => {
  const { url, format } = receiver;
  return (
    <p className="actions">
      <RoleAct entry="test-receiver" label="Send a test" about={url} does={() => test(pid, receiver)} />
      {format === "standard" && (
        <RoleAct
          entry="rotate-receiver"
          label="Rotate the secret"
          about={url}
          does={() => rotate(pid, receiver)}
        />
      )}
      <RoleAct entry="remove-receiver" label="Remove" about={url} does={() => remove(pid, receiver)} />
    </p>
  );
};

const OneReceiver = ({ data }: { readonly data: Shown }) => {
  const { url, format, events, created_at: added, disabled_reason: why, warning } = data.receiver;
  const { previous_secret_valid_until: until } = data.receiver;
  return (
    <>
      <h1>
        <code>{url}</code>
      </h1>
      {why !== null && (
        <Callout tone="bad">{`Disabled. ${REASONS[why] ?? why} Events that happen meanwhile are not sent.`}</Callout>
      )}
      {warning !== null && <Callout tone="warn">{warning}</Callout>}
      <Facts
        rows={[
          ["Format", format],
          ["Events", events.join(", ")],
          ["Added", <Time key="added" at={added} />],
          ["Former secret signs until", until !== null && <Time at={until} />],
        ]}
      />
      <Acts {...data} />
      <Deliveries {...data} />
    </>
  );
};

export const receiverPage = framedPage<Shown>({
  load: async ([pid = "", id = ""]) => {
    const [project, receiver] = await Promise.all([
      request("GET /v1/projects/:pid", { params: { pid } }),
      request("GET /v1/projects/:pid/webhooks/:id", { params: { pid, id } }),
      queries.infiniteQuery(deliveriesQuery(pid, id)),
    ]);
    return { project, receiver };
  },
  title: ({ project, receiver }) => `${receiver.url} · Notifications of ${project.name}`,
  head: ({ project }) => (
    <Trail
      steps={[
        ["Projects", "#/projects"],
        [project.name, projectLink(project.id)],
        ["Notifications", projectLink(project.id, "/notifications")],
        ["Receiver", null],
      ]}
    />
  ),
  Body: OneReceiver,
});
