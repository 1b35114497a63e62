/** The reader's own subscriptions at the makers of agent runtimes. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { Answer } from "../../src/cli/contract.ts";
import { queries } from "../api/queries.ts";
import { request } from "../api/client.ts";
import { ask } from "../frame/dialog.ts";
import { notice } from "../frame/notices.ts";
import { Act } from "../ui/act.tsx";
import { Form, TextField } from "../ui/form.tsx";
import { Detail, Row, Time } from "../ui/parts.tsx";

type Listed = Answer<"GET /v1/me/subscriptions">;
type Subscription = Listed["subscriptions"][number];
type Possible = Listed["possible"][number];

export const subscriptionsQuery = queryOptions({
  queryKey: ["subscriptions"],
  queryFn: () => request("GET /v1/me/subscriptions", {}),
});

const readAgain = (): Promise<void> => queries.invalidateQueries({ queryKey: subscriptionsQuery.queryKey });

const save = async ({ runtime, title }: Possible, content: string): Promise<void> => {
  await request("PUT /v1/me/subscriptions/:runtime", { params: { runtime }, payload: { content } });
  await readAgain();
  notice(`Your ${title} is saved. Sessions that you start with ${runtime} use it.`);
};

const remove = async ({ runtime, title }: Subscription): Promise<void> => {
  const sure = await ask({
    title: `Remove your ${title}?`,
    text: "It is deleted here, and taken out of your running sessions. Their agents start again without it. At its maker, nothing changes.",
    confirm: "Remove",
    danger: true,
  });
  if (sure === null) return;
  await request("DELETE /v1/me/subscriptions/:runtime", { params: { runtime } });
  await readAgain();
  notice(`Your ${title} is removed.`);
};

const SubscriptionRow = ({ one }: { readonly one: Subscription }) => (
  <Row states={null} actions={<Act label="Remove" about={one.title} does={() => remove(one)} />}>
    <strong>{one.title}</strong>
    <Detail>
      {`${one.runtime} · saved `}
      <Time at={one.saved_at} />
      {one.renewed_at !== null && " · renewed "}
      {one.renewed_at !== null && <Time at={one.renewed_at} />}
      {one.used_at === null ? " · not used yet" : " · last used "}
      {one.used_at !== null && <Time at={one.used_at} />}
    </Detail>
  </Row>
);

/** Its field exists while it is open, so that a page with several has each label once. */
const SaveForm = ({ possible, isKept }: { readonly possible: Possible; readonly isKept: boolean }) => {
  const [isOpen, setOpen] = useState(false);
  const { title, how, file } = possible;
  return (
    <details open={isOpen} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>{isKept ? `Replace your ${title}` : `Save your ${title}`}</summary>
      {isOpen && (
        <Form
          submit="Save"
          sending="Saving…"
          onSend={async ({ content = "" }) => {
            await save(possible, content);
            setOpen(false);
          }}
        >
          {file === null ? (
            <TextField
              name="content"
              label="Token"
              type="password"
              hint={`What this prints on your machine: ${how}`}
              required
            />
          ) : (
            <TextField
              name="content"
              label="File"
              lines={4}
              mono
              hint={`The text of ~/${file} on your machine, after: ${how}. It is not shown again.`}
              required
            />
          )}
        </Form>
      )}
    </details>
  );
};

/** Empty if no runtime of the installation can use one. */
export const Subscriptions = () => {
  const { data } = useQuery(subscriptionsQuery);
  if (data === undefined || data.possible.length + data.subscriptions.length === 0) return null;
  const kept = new Set(data.subscriptions.map(({ runtime }) => runtime));
  return (
    <section>
      <h2>Your own subscriptions</h2>
      <p className="quiet">
        Sessions that you start with these runtimes use them, while you alone steer them, unless you choose a
        model of a provider. They are inside the sandbox then, and their usage is not counted.
      </p>
      {data.subscriptions.length > 0 && (
        <ul className="rows">
          {data.subscriptions.map((one) => (
            <SubscriptionRow key={one.runtime} one={one} />
          ))}
        </ul>
      )}
      {data.possible.map((possible) => (
        <SaveForm key={possible.runtime} possible={possible} isKept={kept.has(possible.runtime)} />
      ))}
    </section>
  );
};
