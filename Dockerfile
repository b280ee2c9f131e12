# No base image: the binary is static and needs nothing else. `make image` puts
# it, and an empty data directory, into .bin/image first.
FROM scratch
COPY --chown=65532:65532 .bin/image/ /
USER 65532:65532
# A port that is published must listen on all addresses of the container. To say
# that nobody else can reach it is up to whoever runs it: -e TARRY_INSECURE=true.
ENV TARRY_DATA_DIR=/data \
    TARRY_HTTP_ADDR=0.0.0.0:7300 \
    TARRY_CLUSTER_ADDR=0.0.0.0:7301 \
    TARRY_GOSSIP_ADDR=0.0.0.0:7302 \
    TARRY_BEANSTALK_ADDR=0.0.0.0:11300
VOLUME /data
EXPOSE 7300 7301 7302 7302/udp 11300
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=3s --start-period=30s CMD ["/tarry", "ready", "--addr", "127.0.0.1:7300"]
ENTRYPOINT ["/tarry"]
CMD ["server"]
