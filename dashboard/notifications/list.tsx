/** A project's outbound webhooks: systems and chats that hear of its events. */
import { useInfiniteQuery } from "@tanstack/react-query";
import { request } from "../api/client.ts";
import { pagedQuery } from "../api/lists.ts";
import type { Project } from "../api/projects.ts";
import { queries } from "../api/queries.ts";
import { projectLink } from "../elements/parts.ts";
import { headOf } from "../projects/head.tsx";
import { RoleAct } from "../ui/act.tsx";
import { CheckField, Form, SelectField, TextField } from "../ui/form.tsx";
import { framedPage } from "../ui/framed-page.tsx";
import { Detail, Empty, More, Row, Tag, Time } from "../ui/parts.tsx";
import { EVENTS } from "./events.ts";
import { add, FORMATS, REASONS, type Receiver, setStatus, test } from "./receivers.ts";

const receiversQuery = (pid: string) =>
  pagedQuery(["receivers", pid], (query) =>
    request("GET /v1/projects/:pid/webhooks", { params: { pid }, query }),
  );

const Last = ({ last_delivery: last }: Receiver) =>
  last === null ? (
    <Detail>Nothing was sent yet.</Detail>
  ) : (
    <Detail>
      Last: <code>{last.type}</code> <Time at={last.created_at} />
      {`, ${last.status}`}
    </Detail>
  );

const ReceiverRow = ({ pid, receiver }: { readonly pid: string; readonly receiver: Receiver }) => {
  const { id, url, format, events, status, disabled_reason: why, warning, failing_since: failing } = receiver;
  const isEnabled = status === "enabled";
  return (
    <Row
      states={
        <>
          <Tag>{format}</Tag>
          {!isEnabled && <Tag tone="bad">disabled</Tag>}
          {isEnabled && failing !== null && <Tag tone="warn">failing</Tag>}
        </>
      }
      actions={
        <>
          <RoleAct entry="test-receiver" label="Send a test" about={url} does={() => test(pid, receiver)} />
          <RoleAct
            entry={isEnabled ? "disable-receiver" : "enable-receiver"}
            label={isEnabled ? "Disable" : "Enable"}
            about={url}
            does={() => setStatus(pid, receiver, isEnabled ? "disabled" : "enabled")}
          />
        </>
      }
    >
      <a href={projectLink(pid, `/notifications/${id}`)} className="named">
        <code>{url}</code>
      </a>
      <Detail>{events.map((event) => EVENTS[event].label).join(" · ")}</Detail>
      <Last {...receiver} />
      {(why !== null || warning !== null) && (
        <span className="reason">{why === null ? warning : (REASONS[why] ?? why)}</span>
      )}
    </Row>
  );
};

const ReceiverForm = ({ pid }: { readonly pid: string }) => (
  <Form entry="add-receiver" submit="Add the receiver" sending="Adding…" onSend={(typed) => add(pid, typed)}>
    <SelectField name="format" label="Format" options={FORMATS} />
    <TextField
      name="url"
      label="Address"
      hint="An `https` address. For a chat, the address that Slack (Incoming Webhooks) or Discord (Webhooks) made for the channel."
      type="url"
      required
      mono
      placeholder="https://receiver.example.org/platform"
    />
    <strong>Events</strong>
    {Object.entries(EVENTS).map(([event, { label, isUsual }]) => (
      <CheckField key={event} name={event} label={label} isTicked={isUsual} />
    ))}
  </Form>
);

interface Shown {
  readonly project: Project;
}

const Receivers = ({ data: { project } }: { readonly data: Shown }) => {
  const list = useInfiniteQuery(receiversQuery(project.id));
  const receivers = list.data?.pages.flatMap((page) => page.webhooks) ?? [];
  return (
    <>
      <h2>Notifications</h2>
      <p className="quiet">
        Your own systems, Slack or Discord can hear of this project's events. A message has ids, names and a
        link to this page. It has no prompt, no text of an agent and no secret.
      </p>
      {receivers.length === 0 ? (
        <Empty title="No receivers yet.">Add the address of a channel or of your own system below.</Empty>
      ) : (
        <ul className="rows">
          {receivers.map((one) => (
            <ReceiverRow key={one.id} pid={project.id} receiver={one} />
          ))}
        </ul>
      )}
      <More list={list}>Show more receivers</More>
      <section>
        <h2>Add a receiver</h2>
        <ReceiverForm pid={project.id} />
      </section>
    </>
  );
};

export const receiversPage = framedPage<Shown>({
  load: async ([pid = ""]) => {
    const [project] = await Promise.all([
      request("GET /v1/projects/:pid", { params: { pid } }),
      queries.infiniteQuery(receiversQuery(pid)),
    ]);
    return { project };
  },
  title: ({ project }) => `Notifications of ${project.name}`,
  head: headOf("/settings"),
  Body: Receivers,
});
