/** For each alert of docs/operate/alerts.yml: series that must fire it, and series that must not. One sample a minute. */

export interface AlertCase {
  readonly alert: string;
  /** Minutes until the look. */
  readonly after: number;
  /** Series in promtool's notation: the name, and the values. */
  readonly bad: Readonly<Record<string, string>>;
  readonly good: Readonly<Record<string, string>>;
}

const WEBHOOKS = 'platform_http_request_seconds_count{route="POST /v1/webhooks/projects/:pid/:slug",status=';
const OTHERS = 'platform_http_request_seconds_count{route="GET /v1/me",status="5xx"}';
const BOOTS = "platform_boot_seconds_count{outcome=";
const late = (name: string, limit: string, above: string, within: string) => ({
  [`platform_${name}_bucket{le="${limit}"}`]: within,
  [`platform_${name}_bucket{le="${above}"}`]: "0+100x600",
  [`platform_${name}_bucket{le="+Inf"}`]: "0+100x600",
});

/** Most errors are within the limit: 2 of 1,000 are too many over hours, and too few for a page. */
const FEW_ERRORS = { [`${WEBHOOKS}"2xx"}`]: "0+1000x600", [`${WEBHOOKS}"5xx"}`]: "0+2x600" };

export const ALERT_CASES: readonly AlertCase[] = [
  {
    alert: "PlatformDown",
    after: 5,
    bad: { 'up{job="platform",instance="a"}': "0x10" },
    good: { 'up{job="platform",instance="a"}': "1x10", 'up{job="other",instance="b"}': "0x10" },
  },
  {
    alert: "PlatformDatabaseDown",
    after: 5,
    bad: { 'platform_database_up{instance="a"}': "1x10", 'platform_database_up{instance="b"}': "0x10" },
    good: { 'platform_database_up{instance="a"}': "1x10" },
  },
  {
    alert: "PlatformWebhooksFailing",
    after: 70,
    bad: { [`${WEBHOOKS}"2xx"}`]: "0+100x600", [`${WEBHOOKS}"5xx"}`]: "0+3x600" },
    good: { ...FEW_ERRORS, [OTHERS]: "0+1000x600" },
  },
  {
    alert: "PlatformWebhooksDegraded",
    after: 500,
    bad: FEW_ERRORS,
    good: { [`${WEBHOOKS}"2xx"}`]: "0+10000x600", [`${WEBHOOKS}"5xx"}`]: "0+1x600", [OTHERS]: "0+1000x600" },
  },
  {
    alert: "PlatformBootsFailing",
    after: 90,
    bad: { [`${BOOTS}"ready"}`]: "0+10x200", [`${BOOTS}"failed"}`]: "0+1x200" },
    // Three of ten, of which one cannot tell what they have in common.
    good: { [`${BOOTS}"ready"}`]: "0x50 7x150", [`${BOOTS}"failed"}`]: "0x50 3x150" },
  },
  {
    alert: "PlatformCronLate",
    after: 90,
    bad: late("cron_lateness_seconds", "5", "10", "0+98x600"),
    good: late("cron_lateness_seconds", "5", "10", "0+100x600"),
  },
  {
    alert: "PlatformSchedulerLate",
    after: 10,
    bad: { 'platform_scheduler_late{instance="a"}': "1x20" },
    good: { 'platform_scheduler_late{instance="a"}': "0x20" },
  },
  {
    alert: "PlatformFiresWaiting",
    after: 10,
    bad: { platform_oldest_fire_age_seconds: "1000x20" },
    good: { platform_oldest_fire_age_seconds: "800x20" },
  },
  {
    alert: "PlatformCommandsStuck",
    after: 10,
    bad: { platform_oldest_command_age_seconds: "400x20" },
    good: { platform_oldest_command_age_seconds: "200x20" },
  },
  {
    alert: "PlatformDeliveriesWaiting",
    after: 15,
    bad: { platform_oldest_delivery_age_seconds: "4000x20" },
    good: { platform_oldest_delivery_age_seconds: "3000x20" },
  },
  {
    alert: "PlatformSlowDatabase",
    after: 30,
    bad: late("admission_seconds", "1", "2.5", "0+98x600"),
    good: late("admission_seconds", "1", "2.5", "0+100x600"),
  },
  {
    alert: "PlatformDiskScarce",
    after: 10,
    bad: { 'platform_data_disk_free_bytes{instance="a"}': "1000000000x20" },
    good: { 'platform_data_disk_free_bytes{instance="a"}': "1100000000x20" },
  },
  {
    alert: "PlatformDutiesFail",
    after: 20,
    bad: { 'platform_duties_failed{instance="a"}': "1x30" },
    good: { 'platform_duties_failed{instance="a"}': "1x10 0x20" },
  },
];

/** The cases as a file for `promtool test rules`. */
export const ruleTests = (rules: string, cases: readonly AlertCase[]) => ({
  rule_files: [rules],
  evaluation_interval: "1m",
  tests: cases.flatMap(({ alert, after, bad, good }) =>
    [bad, good].map((series) => ({
      interval: "1m",
      input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
      promql_expr_test: [
        {
          expr: `count(ALERTS{alertname="${alert}",alertstate="firing"})`,
          eval_time: `${after}m`,
          exp_samples: series === bad ? [{ labels: "{}", value: 1 }] : [],
        },
      ],
    })),
  ),
});
