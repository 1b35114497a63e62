/** The whole store, joined of the core's ports and the features': as a type, in Postgres, and for another master key. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import type { Activity } from "../features/activity/ports/activity.ts";
import * as ActivityRows from "../features/activity/sql/activity.ts";
import type { Approvals } from "../features/approvals/ports/approvals.ts";
import * as ApprovalRows from "../features/approvals/sql/approvals.ts";
import * as SealedApprovals from "../features/approvals/sql/reseal.ts";
import type { ChangeRequests } from "../features/change-requests/ports/change-requests.ts";
import type { Remarks } from "../features/change-requests/ports/remarks.ts";
import type { Reviewers } from "../features/change-requests/ports/reviewers.ts";
import * as ChangeRequestRows from "../features/change-requests/sql/change-requests.ts";
import * as RemarkRows from "../features/change-requests/sql/remarks.ts";
import * as ReviewerRows from "../features/change-requests/sql/reviewers.ts";
import type { ModelProviders } from "../features/model-providers/ports/model-providers.ts";
import type { ModelUsage } from "../features/model-providers/ports/model-usage.ts";
import * as ProviderRows from "../features/model-providers/sql/model-providers.ts";
import * as UsageRows from "../features/model-providers/sql/model-usage.ts";
import type { OutboundDeliveries } from "../features/notifications/ports/outbound-deliveries.ts";
import type { OutboundWebhooks } from "../features/notifications/ports/outbound-webhooks.ts";
import type { OwnReceivers } from "../features/notifications/ports/own-receivers.ts";
import * as Deliveries from "../features/notifications/sql/outbound-deliveries.ts";
import * as Webhooks from "../features/notifications/sql/outbound-webhooks.ts";
import * as OwnReceiverRows from "../features/notifications/sql/own-receivers.ts";
import type { Spend } from "../features/spend/ports/spend.ts";
import * as SpendRows from "../features/spend/sql/spend.ts";
import type { Subscriptions } from "../features/subscriptions/ports/subscriptions.ts";
import * as SubscriptionRows from "../features/subscriptions/sql/subscriptions.ts";
import type { CoreStore } from "../store/ports/store.ts";
import { coreStore, storeParts } from "../store/postgres/layer.ts";
import { resealAll, type Resealing, SEALED_COLUMNS as CORE_COLUMNS } from "../store/postgres/reseal.ts";

/** What both adapters provide, and what the service needs of either. */
export type Store =
  | CoreStore
  | Activity
  | Approvals
  | ChangeRequests
  | ModelProviders
  | ModelUsage
  | Remarks
  | Reviewers
  | OutboundDeliveries
  | OutboundWebhooks
  | OwnReceivers
  | Spend
  | Subscriptions;

/** Needs a migrated database: `client.ts` or `embedded.ts` provide the client, `migrate.ts` the schema. */
export const postgresStore = Layer.mergeAll(
  coreStore,
  ActivityRows.layer,
  ApprovalRows.layer,
  ChangeRequestRows.layer,
  RemarkRows.layer,
  ReviewerRows.layer,
  ProviderRows.layer,
  UsageRows.layer,
  SpendRows.layer,
  SubscriptionRows.layer,
  Deliveries.layer,
  Webhooks.layer,
  OwnReceiverRows.layer,
).pipe(Layer.provide(storeParts));

/** The columns with sealed values. */
export const SEALED_COLUMNS: readonly string[] = [
  ...CORE_COLUMNS,
  ...SealedApprovals.SEALED_COLUMNS,
  ...Webhooks.SEALED_COLUMNS,
  ...ProviderRows.SEALED_COLUMNS,
  ...SubscriptionRows.SEALED_COLUMNS,
].toSorted();

/** Seals everything with another master key (store/postgres/reseal.ts). @returns how many values, by kind */
export const resealDatabase = <E>(work: Resealing<E>) =>
  resealAll(work, (reseal) =>
    Effect.all({
      approvals: SealedApprovals.resealApprovals(reseal),
      receivers: Webhooks.resealReceivers(reseal),
      modelProviders: ProviderRows.resealModelProviders(reseal),
      subscriptions: SubscriptionRows.resealSubscriptions(reseal),
    }),
  );
