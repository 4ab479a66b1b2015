import type { ServiceTrail } from '../ledger/service-trail.js';

/** Remarks on services that did not stay what they were. */
export function serviceRemarks(trail: ServiceTrail | null): readonly string[] {
  if (trail === null) return [];
  return [
    ...trail.changes.map(
      ({ seq, service, at, changed, total }) =>
        `entry ${seq}: ${service} described itself otherwise ${at === 'end' ? 'at its end than at its start' : 'than the first service of its model'}, at ${total} places: ${changed.join(', ')}`,
    ),
    ...trail.swaps.map(
      ({ seq, model, since, attempts }) =>
        `entry ${seq}: a service of ${model} was found to be another one while it was in use: ${attempts} attempts started since entry ${since}, its last good check, may have met another model`,
    ),
    ...trail.doubts.map(
      ({ seq, service, at, since, attempts }) =>
        `entry ${seq}: ${service} answered the canary otherwise at its ${at} than the reference: ${attempts} attempts started since entry ${since} may have met other weights or settings`,
    ),
  ];
}
