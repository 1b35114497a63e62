/** Handlers of api.ts. No answer has what a subscription is. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import { HttpApiBuilder } from "effect/http-api";
import { renewalFault, subscriptionFault } from "../../domain/agents/subscription.ts";
import type { RuntimeSubscription } from "../../domain/runtimes/runtime.ts";
import { Caller } from "../../http/api/access.ts";
import { badRequest, notFound } from "../../http/api/errors.ts";
import { Platform } from "../../http/api/platform.ts";
import { forbidden } from "../../http/callers/authorize.ts";
import { withApiErrors } from "../../http/steps/answers.ts";
import { wireForm } from "../../http/steps/wire.ts";
import { withAudit } from "../../services/audit.ts";
import { newUuid } from "../../services/entropy.ts";
import { Keyring } from "../../services/keyring.ts";
import { Runtimes } from "../../services/projects/runtimes.ts";
import { Sessions } from "../../store/ports/sessions/sessions.ts";
import { SubscriptionsGroup, SubscriptionWire } from "./api.ts";
import { makeWithdrawal } from "./own.ts";
import { type Subscription, Subscriptions } from "./ports/subscriptions.ts";
import { openContent, sealContent } from "./sealing.ts";

/** What the installation's runtimes can use, by the runtime's name. */
const possible = Effect.map(
  Runtimes,
  (runtimes): ReadonlyMap<string, RuntimeSubscription> =>
    new Map(
      runtimes.flatMap(({ name, subscription }) => (subscription === null ? [] : [[name, subscription]])),
    ),
);

const subscriptionForm = wireForm(SubscriptionWire);
const showSubscription = (row: Subscription, runtimes: ReadonlyMap<string, RuntimeSubscription>) =>
  subscriptionForm({ ...row, title: runtimes.get(row.runtime)?.title ?? row.runtime });

const owner = Effect.map(Caller, ({ accountId, user }) => ({ accountId, userId: user.id }));

const list = Effect.gen(function* () {
  const runtimes = yield* possible;
  const own = yield* (yield* Subscriptions).list(yield* owner);
  return {
    subscriptions: own.map((one) => showSubscription(one, runtimes)),
    possible: [...runtimes].map(([runtime, { title, how, file }]) => ({
      runtime,
      title,
      how,
      file: file?.path ?? null,
    })),
  };
});

const save = Effect.fnUntraced(function* (runtime: string, text: string) {
  const runtimes = yield* possible;
  const subscription = runtimes.get(runtime);
  if (subscription === undefined) return yield* notFound("runtime with a subscription");
  const content = subscription.token === null ? text : text.trim();
  const fault = subscriptionFault(subscription, content);
  if (fault !== null) return yield* badRequest("content", fault);
  const row = { ...(yield* owner), id: yield* newUuid, runtime };
  const sealed = yield* sealContent(row, content, 1);
  return yield* (yield* Subscriptions).save({ ...row, sealed, now: yield* Clock.currentTimeMillis }).pipe(
    withAudit(() => ({ action: "subscription.saved", target: runtime })),
    Effect.map((one) => showSubscription(one, runtimes)),
  );
});

const remove = Effect.fnUntraced(function* (runtime: string) {
  const { list: all, remove: removes, holders } = yield* Subscriptions;
  const who = yield* owner;
  const one = (yield* all(who)).find((row) => row.runtime === runtime);
  if (one === undefined) return yield* notFound("subscription");
  const row = { action: "subscription.removed", target: runtime } as const;
  yield* removes(one.id).pipe(withAudit((isRemoved) => (isRemoved ? row : null)));
  const reason = "Its person removed her own subscription, so it was taken out of this session.";
  const withdraw = yield* makeWithdrawal;
  // The row is gone. A sandbox that does not answer keeps it until it ends, and others cannot enter it before.
  yield* withdraw(yield* holders(who.userId, runtime), reason).pipe(
    Effect.catchTag("SubscriptionStays", () =>
      Effect.logWarning("a sandbox keeps a removed subscription until it ends"),
    ),
  );
});

/** S3 of domain/agents/subscription.ts. A refused one is not the sandbox's fault: the next turn delivers it again. */
const renew = Effect.fnUntraced(function* (projectId: string, text: string) {
  const caller = yield* Caller;
  const session = caller.sessionId === null ? null : yield* (yield* Sessions).get(caller.sessionId);
  if (session === null || caller.sandboxId === null || session.projectId !== projectId)
    return yield* forbidden(caller, { by: "token" });
  const rows = yield* Subscriptions;
  const one = yield* rows.deliveredTo(caller.sandboxId);
  const subscription = one === null ? undefined : (yield* possible).get(one.runtime);
  if (one === null || subscription === undefined) return yield* notFound("subscription");
  const content = openContent(yield* Keyring, one);
  if (Result.isFailure(content)) return yield* notFound("subscription");
  const now = yield* Clock.currentTimeMillis;
  const fault = renewalFault(subscription, { kept: content.success, given: text, now });
  if (fault !== null) return yield* badRequest("content", fault);
  // Of two concurrent ones, one is refused here, and comes again after its next turn.
  const sealed = yield* sealContent(one, text, one.sealed.version + 1);
  if (!(yield* rows.renew(one.id, { sealed, now }))) return yield* notFound("subscription");
});

export const subscriptionsHandlers = HttpApiBuilder.group(
  Platform.add(SubscriptionsGroup),
  "subscriptions",
  (handlers) =>
    handlers
      .handle("list", () => withApiErrors(list))
      .handle("save", ({ params, payload }) => withApiErrors(save(params.runtime, payload.content)))
      .handle("remove", ({ params }) => withApiErrors(remove(params.runtime)))
      .handle("renew", ({ params, payload }) => withApiErrors(renew(params.pid, payload.content))),
);
