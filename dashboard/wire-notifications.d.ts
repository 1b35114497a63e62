/** The fields of the API's answers about outbound webhooks that the page reads (api.md 12). */

/** One request, and what came of it. */
export interface Try {
  status: number | null;
  error: string | null;
  answer: string;
  took_ms: number;
}

export interface Delivery {
  id: string;
  type: string;
  status: "pending" | "delivered" | "failed" | "cancelled";
  tries: number;
  next_try_at: string | null;
  last_try: Try | null;
  data: Record<string, unknown>;
  created_at: string;
}

export interface Receiver {
  id: string;
  format: string;
  url: string;
  events: string[];
  status: "enabled" | "disabled";
  disabled_reason: string | null;
  failing_since: string | null;
  warning: string | null;
  previous_secret_valid_until: string | null;
  last_delivery: Delivery | null;
  created_at: string;
}
